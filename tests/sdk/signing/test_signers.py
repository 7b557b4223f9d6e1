import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data
from tests.rigs.applications import serving
from tests.rigs.values import a_key, an_address

from foretell.domain.errors.chain import ChainUnavailable, RpcRefused
from foretell.domain.errors.command import SignerRefused
from foretell.domain.evm.raw_transaction import Fees, TxFields, sign_tx
from foretell.domain.values.eip712 import address_of_key, personal_digest, recover_signer
from foretell.edge.telemetry import Receive, Scope, Send
from foretell.sdk.authentication import usual_l1_domain
from foretell.sdk.json_rpc import JsonRpc
from foretell.sdk.signing.signers import KeySigner, RemoteSigner
from foretell.sdk.signing.typed_data import key_request

pytestmark = pytest.mark.anyio

KEY = a_key("remote")
ADDRESS = address_of_key(KEY)
TYPED = key_request(usual_l1_domain(137), ADDRESS, "1795269000", 0)
FIELDS = TxFields(137, 3, Fees(2000, 1000), 21_000, an_address("to"), b"\x01\x02", 5)
MESSAGE = bytes(range(32))
Answer = Callable[[str, list[Any]], Any]


def signed_by(key: bytes) -> Answer:
    """Return what a signer answers that eth-account is the heart of."""

    def answer(method: str, params: list[Any]) -> Any:
        if method == "eth_signTypedData_v4":
            signable = encode_typed_data(full_message=params[1])
            return "0x" + Account.sign_message(signable, key).signature.hex().removeprefix("0x")
        if method == "eth_sign":
            signable = encode_defunct(hexstr=params[1])
            return "0x" + Account.sign_message(signable, key).signature.hex().removeprefix("0x")
        request = dict(params[0])
        del request["from"]
        request |= {"gas": int(request["gas"], 16), "type": 2}
        signed = Account.sign_transaction(request, key)
        return {"raw": "0x" + signed.raw_transaction.hex().removeprefix("0x"), "tx": {}}

    return answer


@pytest.fixture
async def remote() -> AsyncIterator[Callable[[Answer], Awaitable[RemoteSigner]]]:
    """Give a maker of signers, each behind a JSON-RPC server."""
    answers: list[Answer] = []

    async def application(_: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message["body"]
            if not message["more_body"]:
                break
        request = json.loads(body)
        found = answers[-1](request["method"], request["params"])
        error = isinstance(found, dict) and "code" in found
        answer = {"id": request["id"], "error" if error else "result": found}
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    async with serving(application) as host, JsonRpc(f"http://{host}") as rpc:

        async def make(answer: Answer) -> RemoteSigner:
            answers.append(answer)
            return RemoteSigner(rpc, ADDRESS)

        yield make


Make = Callable[[Answer], Awaitable[RemoteSigner]]


async def test_a_remote_signer_signs_what_a_key_would(remote: Make) -> None:
    signer, own = await remote(signed_by(KEY)), KeySigner(KEY)
    assert await signer.sign_typed(TYPED) == await own.sign_typed(TYPED)
    assert recover_signer(TYPED.digest(), await signer.sign_typed(TYPED)) == ADDRESS
    assert await signer.sign_transaction(FIELDS) == sign_tx(FIELDS, KEY)
    assert await signer.sign_message(MESSAGE) == await own.sign_message(MESSAGE)
    assert recover_signer(personal_digest(MESSAGE), await own.sign_message(MESSAGE)) == ADDRESS


@pytest.mark.parametrize(
    "answer",
    [signed_by(a_key("another")), lambda *_: "0x00", lambda *_: None, lambda *_: "0x" + "ff" * 65],
    ids=["another key", "too short", "nothing", "no signature"],
)
async def test_another_signature_than_the_accounts_is_refused(remote: Make, answer: Answer) -> None:
    signer = await remote(answer)
    with pytest.raises(SignerRefused, match=ADDRESS):
        await signer.sign_typed(TYPED)
    with pytest.raises(SignerRefused, match=ADDRESS):
        await signer.sign_message(MESSAGE)
    with pytest.raises(SignerRefused, match=ADDRESS):
        await signer.sign_transaction(FIELDS)


async def test_another_transaction_than_the_one_asked_for_is_refused(remote: Make) -> None:
    other = sign_tx(FIELDS._replace(value_wei=6), KEY)
    signer = await remote(lambda *_: "0x" + other.raw.hex())
    with pytest.raises(SignerRefused, match="the one that was asked for"):
        await signer.sign_transaction(FIELDS)


async def test_a_signer_that_says_no_is_quoted(remote: Make) -> None:
    signer = await remote(lambda *_: {"code": -32000, "message": "the user said no"})
    with pytest.raises(RpcRefused, match="the user said no"):
        await signer.sign_typed(TYPED)


async def test_a_signer_that_is_away_is_not_waited_for_for_ever() -> None:
    async with JsonRpc("http://127.0.0.1:1") as rpc:
        with pytest.raises(ChainUnavailable):
            await RemoteSigner(rpc, ADDRESS).sign_typed(TYPED)


def test_a_key_is_read_from_hex_and_never_shown() -> None:
    signer = KeySigner.from_hex(f"0x{KEY.hex()}\n")
    assert signer.address == ADDRESS
    assert KEY.hex() not in repr(signer)
    assert KeySigner.new(lambda count: b"\x01" * count).private_key == b"\x01" * 32
