import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs
from tests.creation.rig import CreationRig, CreatorClient
from tests.rigs.chain_snapshots import wait_until_mined
from tests.rigs.values import NOW_MS, a_word
from typing_extensions import override

from foretell.chain.reader import Reader
from foretell.chain.sender import Sender, SenderOptions
from foretell.creation.prepare import ids_of, payload_of
from foretell.creation.registration import ATTEMPTS_MAX, Registered, register
from foretell.domain.contracts.calldata import encode_register_token
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID, AccountRole, SandboxAccount
from foretell.domain.creation.plan import MarketIds
from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.errors.creation import RegistrationBlocked, RegistrationRefused
from foretell.domain.evm.raw_transaction import Fees, TxFields, sign_tx
from foretell.domain.evm.transaction import SentTx, TxAttempt, TxMove, TxStatus, TxTrigger, moved
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.domain.values.tokens import TokenPair
from foretell.store.creation.requests import load_request
from foretell.store.outbox.transactions import REGISTRATION, TxOutbox

pytestmark = pytest.mark.anyio


async def asked(creator: CreatorClient) -> MarketIds:
    """Ask a question as a creator; its tokens are not registered yet."""
    rig = creator.rig
    request_id = await creator.prepared()
    await creator.finalize(request_id, await creator.paid(request_id))
    async with rig.database.reading() as tx:
        request = await load_request(tx, request_id)
    assert request is not None
    (ids,) = ids_of(rig.context, payload_of(rig.context, request))
    return ids


async def nonce_of(rig: CreationRig, account: SandboxAccount) -> int:
    call = "eth_getTransactionCount"
    return int(await rig.sandbox.rpc.call(call, account.address, "latest"), 16)


async def confirm(rig: CreationRig) -> None:
    for _ in range(3):
        await rig.sandbox.mine()
        await rig.context.registrar.run_once()


@pytest.mark.spec(49)
async def test_tokens_are_registered_once_even_after_a_crash(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    registrar = rig.sandbox.account(AccountRole.REGISTRAR)
    ids = await asked(creator)
    before = await nonce_of(rig, registrar)

    on_its_way = await register(rig.context, ids, NOW_MS)
    await rig.restart()
    still = await register(rig.context, ids, NOW_MS)
    await confirm(rig)
    done = await register(rig.context, ids, NOW_MS)
    again = await register(rig.context, ids, NOW_MS)
    later = await register(rig.context, ids, NOW_MS + 1)

    assert (on_its_way, still) == (None, None)
    assert done is not None
    assert done.tx_hash is not None
    assert again == done
    assert later == Registered(None)
    assert await nonce_of(rig, registrar) == before + 1
    assert await rig.sandbox.reader.is_registered(ids.tokens, ids.condition_id)


async def test_concurrent_registrations_send_one_transaction(creator: CreatorClient) -> None:
    rig = creator.rig
    registrar = rig.sandbox.account(AccountRole.REGISTRAR)
    ids = await asked(creator)
    before = await nonce_of(rig, registrar)

    await asyncio.gather(*(register(rig.context, ids, NOW_MS) for _ in range(6)))

    await wait_until_mined(rig.sandbox.rpc)
    assert await nonce_of(rig, registrar) == before + 1


async def register_by_hand(rig: CreationRig, ids: MarketIds) -> None:
    registrar = rig.sandbox.account(AccountRole.REGISTRAR)
    call = encode_register_token(ids.tokens, ids.condition_id)
    await rig.sandbox.call(registrar, rig.sandbox.deployment.exchange, call)


@pytest.mark.spec(49)
async def test_registered_tokens_are_left_as_they_are(creator: CreatorClient) -> None:
    rig = creator.rig
    ids = await asked(creator)
    await register_by_hand(rig, ids)
    before = await nonce_of(rig, rig.sandbox.account(AccountRole.REGISTRAR))

    assert await register(rig.context, ids, NOW_MS) == Registered(None)
    assert await nonce_of(rig, rig.sandbox.account(AccountRole.REGISTRAR)) == before


class LateReader(Reader):
    """A node that lags: it reports a registration one call late."""

    asked = 0

    @override
    async def is_registered(
        self,
        pair: TokenPair,
        condition_id: Bytes32,
        exchange: Address | None = None,
        at: str = "latest",
    ) -> bool:
        self.asked += 1
        return self.asked > 1 and await super().is_registered(pair, condition_id, exchange, at)


async def test_a_concurrent_registration_by_another_account_is_found(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    ids = await asked(creator)
    await register_by_hand(rig, ids)
    rig.change(reader=LateReader(rig.sandbox.rpc, rig.sandbox.deployment))

    assert await register(rig.context, ids, NOW_MS) == Registered(None)


def without_the_right(rig: CreationRig) -> None:
    """Have another account register tokens."""
    powerless = Sender(
        rig.sandbox.rpc,
        rig.sandbox.trader().private_key,
        TxOutbox(rig.database, REGISTRATION),
        SenderOptions(SANDBOX_CHAIN_ID),
        rig.clock.now_ms,
    )
    rig.change(registrar=powerless)


async def test_a_registrar_without_the_right_is_refused_with_the_contract_s_error(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    ids = await asked(creator)
    without_the_right(rig)
    with (
        capture_logs() as logs,
        pytest.raises(RegistrationBlocked, match="NotRegistrar"),
    ):
        await register(rig.context, ids, NOW_MS)
    assert [each["cure"] for each in logs] == [
        "have an admin of the exchange add it as a registrar"
    ]


async def test_guard_a_market_that_was_paid_for_waits_for_a_registrar_with_the_right(
    creator: CreatorClient,
) -> None:
    """A finding: it failed at once, and another could claim its name."""
    rig = creator.rig
    registrar = rig.context.registrar
    without_the_right(rig)
    request_id = await creator.prepared()
    answer = await creator.finalize(request_id, await creator.paid(request_id))
    assert answer.status_code == 200, answer.text
    for _ in range(3):
        await rig.run_once()
        rig.clock.move(rig.context.options.finalize_deadline_ms)
    record = await creator.record(request_id)
    assert record["status"] == "finalize_running"
    (waiting,) = [step for step in record["steps"] if step["state"] == "waiting"]
    assert (waiting["step"], waiting.get("until")) == ("registration", None)
    assert "NotRegistrar" in waiting["message"]
    rig.change(registrar=registrar)
    await rig.settle()
    assert (await creator.record(request_id))["status"] == "metadata_update_pending"


async def cancel(rig: CreationRig, ids: MarketIds, attempt: int) -> None:
    """Store an attempt whose nonce another transaction used."""
    outbox = TxOutbox(rig.database, REGISTRATION)
    exchange, key = rig.sandbox.deployment.exchange, rig.sandbox.account(AccountRole.REGISTRAR)
    calldata = encode_register_token(ids.tokens, ids.condition_id)
    nonce = 1_000 + attempt
    fields = TxFields(SANDBOX_CHAIN_ID, nonce, Fees(1, 1), 21_000, exchange, calldata)
    signed = sign_tx(fields, key.private_key)
    sent = SentTx(
        tx_id=f"register:{ids.condition_id}:{attempt}",
        sender=rig.context.registrar.address,
        account_nonce=nonce,
        target=exchange,
        calldata=calldata,
        gas=fields.gas,
        status=TxStatus.PENDING,
        attempts=(TxAttempt(signed.tx_hash, signed.raw, fields.fees, NOW_MS),),
        created_at_ms=NOW_MS,
        updated_at_ms=NOW_MS,
    )
    assert await outbox.record_new(sent)
    canceled = moved(sent, TxMove(TxTrigger.CANCEL, failure="used elsewhere"), NOW_MS)
    assert await outbox.record_move(sent, canceled)


async def test_after_a_lost_nonce_a_registration_is_sent_again_a_limited_number_of_times(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    ids = await asked(creator)
    for attempt in range(1, ATTEMPTS_MAX + 1):
        await cancel(rig, ids, attempt)

    with pytest.raises(RegistrationRefused, match="3 transactions failed"):
        await register(rig.context, ids, NOW_MS)
    await register_by_hand(rig, ids)
    assert await register(rig.context, ids, NOW_MS) == Registered(None)


@pytest.mark.case("D-07")
async def test_a_node_that_lacks_the_condition_of_a_question_is_asked_again(
    creator: CreatorClient,
) -> None:
    """Such a replica failed the request, which its creator had paid."""
    ids = await asked(creator)
    foreign = replace(ids, condition_id=a_word("condition"))

    with pytest.raises(ChainInconsistent, match=f"condition {foreign.condition_id}"):
        await register(creator.rig.context, foreign, NOW_MS)
