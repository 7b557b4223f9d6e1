from typing import Any, Final

import httpx
import pytest
from tests.relayer.rig import Body, OwnerClient, RelayerRig, changed, error_of, without
from tests.rigs.chain_snapshots import wait_until_mined
from tests.rigs.sandbox import SandboxMarket
from tests.rigs.values import an_address

from foretell.domain.contracts.calldata import MergePositions, RedeemPositions
from foretell.relayer.body import BODY_BYTES_MAX

pytestmark = pytest.mark.anyio

POSTS: Final = ["/submit", "/operations/redeem-position", "/operations/merge-position"]
FIELDS: Final = [
    "type",
    "from",
    "to",
    "proxyWallet",
    "data",
    "nonce",
    "signature",
    "signatureParams",
    "signatureParams.operation",
    "signatureParams.safeTxnGas",
    "signatureParams.baseGas",
    "signatureParams.gasPrice",
    "signatureParams.gasToken",
    "signatureParams.refundReceiver",
]
WRONG: Final = [0, None, "0xzz", "", ["0"]]
OPTIONAL: Final = ["value", "metadata"]


async def body_of(path: str, holder: OwnerClient, market: SandboxMarket) -> Body:
    """Return a body that the route accepts."""
    deployment = holder.rig.sandbox.deployment
    redeem = RedeemPositions(deployment.collateral, market.condition_id)
    merge = MergePositions(deployment.collateral, market.condition_id, 5)
    nonce = await holder.next_nonce()
    calldata = (redeem if path.endswith("redeem-position") else merge).encode()
    return holder.body(deployment.conditional_tokens, calldata, nonce)


@pytest.mark.spec(90, 94)
@pytest.mark.parametrize("path", POSTS)
async def test_every_missing_or_malformed_field_is_a_400_that_names_it(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket, path: str
) -> None:
    sent = await rig.sent_count()
    body = await body_of(path, holder, market)
    for field in FIELDS:
        answer = await holder.post(path, without(body, field))
        assert error_of(answer)[0] == 400
        assert error_of(answer)[1].startswith(f"invalid_field {field}: ")
        for value in WRONG:
            answer = await holder.post(path, changed(body, field, value))
            assert error_of(answer)[0] == 400
            assert error_of(answer)[1].startswith(f"invalid_field {field}: ")
    for field, value in (("value", "1"), ("value", "-1"), ("value", None), ("metadata", 5)):
        answer = await holder.post(path, changed(body, field, value))
        assert error_of(answer)[1].startswith(f"invalid_field {field}: ")
    assert await rig.sent_count() == sent
    assert (await holder.get("/transactions")).json()[0]["state"] == "STATE_CONFIRMED"


@pytest.mark.spec(94)
@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"\xff", b'{"type":"SAFE","type":"SAFE"}'])
async def test_a_malformed_body_is_a_400(
    rig: RelayerRig, newcomer: OwnerClient, path: str, raw: bytes
) -> None:
    headers = newcomer.l2_headers("POST", path, raw)
    answer = await rig.http.post(path, content=raw, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["code"] == "malformed_body"


@pytest.mark.parametrize("path", POSTS)
async def test_a_body_has_a_size_limit(rig: RelayerRig, newcomer: OwnerClient, path: str) -> None:
    raw = b" " * (BODY_BYTES_MAX + 1)
    headers = newcomer.l2_headers("POST", path, raw)
    answer = await rig.http.post(path, content=raw, headers=headers)
    assert answer.json()["code"] == "body_too_large"


@pytest.mark.spec(110)
@pytest.mark.parametrize("kind", ["SAFE", "SAFE-CREATE", "safe"])
async def test_a_nonce_is_a_decimal_string(rig: RelayerRig, owner: OwnerClient, kind: str) -> None:
    answer = await rig.http.get("/nonce", params={"address": owner.address, "type": kind})
    assert (answer.status_code, answer.json()) == (200, {"nonce": "0"})


@pytest.mark.spec(110)
@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "address"),
        ({"address": "0x12"}, "address"),
        ({"address": an_address("a"), "type": "PASSKEY"}, "type"),
        ({"address": an_address("a"), "type": "SAFE", "strict": "true", "more": "1"}, "more"),
    ],
)
async def test_a_malformed_query_for_a_nonce_is_a_400(
    rig: RelayerRig, params: dict[str, str], field: str
) -> None:
    status, words = error_of(await rig.http.get("/nonce", params=params))
    assert (status, words.partition(":")[0]) == (400, f"invalid_field {field}")


@pytest.mark.spec(110)
async def test_a_nonce_without_type_is_a_400(rig: RelayerRig, owner: OwnerClient) -> None:
    status, words = error_of(await rig.http.get("/nonce", params={"address": owner.address}))
    assert (status, words.partition(":")[0]) == (400, "invalid_field type")


async def test_a_wallet_is_deployed_or_not(
    rig: RelayerRig, owner: OwnerClient, newcomer: OwnerClient
) -> None:
    async def deployed(address: str) -> Any:
        answer = await rig.http.get("/deployed", params={"address": address, "type": "SAFE"})
        return answer.json()

    assert await deployed(owner.safe) == {"deployed": True}
    assert await deployed(newcomer.safe) == {"deployed": False}
    assert error_of(await rig.http.get("/deployed"))[0] == 400


async def test_a_transaction_needs_an_id(rig: RelayerRig) -> None:
    status, words = error_of(await rig.http.get("/transaction"))
    assert (status, words.partition(":")[0]) == (400, "invalid_field id")


@pytest.mark.parametrize(
    "path",
    ["/operations/redeem", "/wallet/proxy", "/nothing"],
)
async def test_unserved_routes_are_not_found(newcomer: OwnerClient, path: str) -> None:
    answer = await newcomer.post(path, {})
    assert answer.status_code == 404
    assert answer.json()["error"].startswith("unknown_route: ")


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/", {}),
        ("/nonce", {"address": an_address("owner"), "type": "SAFE"}),
        ("/deployed", {"address": an_address("owner")}),
        ("/transaction", {"id": "1"}),
        ("/transactions", {}),
        ("/schema/openapi.json", {}),
    ],
)
async def test_every_route_refuses_unknown_parameters_of_a_strict_client(
    newcomer: OwnerClient, path: str, query: dict[str, str]
) -> None:
    status, words = error_of(await newcomer.get(path, **query, strict="true", luck="1"))
    assert (status, words.partition(":")[0]) == (400, "invalid_field luck")


async def test_a_route_has_its_methods_only(rig: RelayerRig) -> None:
    answer: httpx.Response = await rig.http.get("/submit")
    assert (answer.status_code, answer.headers["allow"]) == (405, "OPTIONS, POST")
    assert answer.json()["code"] == "method_not_allowed"


async def test_the_routes_are_documented(rig: RelayerRig) -> None:
    document = (await rig.http.get("/schema/openapi.json")).json()
    assert document["info"]["title"] == "Foretell relayer"
    assert set(document["paths"]) == {
        "/",
        "/deployed",
        "/limits",
        "/nonce",
        "/operations/approve",
        "/operations/convert-position",
        "/operations/merge-position",
        "/operations/redeem-position",
        "/operations/set-approval",
        "/operations/split-position",
        "/relay-payload",
        "/submit",
        "/transaction",
        "/transactions",
        "/v1/account/transactions/params",
        "/v1/account/transactions/{transaction_id}",
        "/wallet/safe",
    }


async def test_a_submission_with_an_idempotency_key_gets_its_first_answer(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    """Signed again, with a later timestamp; the wallet's nonce is used up by then."""
    body = await body_of("/submit", holder, market)
    rig.http.headers["Idempotency-Key"] = "one"
    first = await holder.submit(body)
    await wait_until_mined(rig.sandbox.rpc)
    sent = await rig.sent_count()
    rig.clock.move(1000)
    again = await holder.submit(body)
    other = await holder.submit(changed(body, "metadata", "another"))
    assert (first.status_code, first.content) == (200, again.content)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert await rig.sent_count() == sent
