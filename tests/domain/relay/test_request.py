from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from eth_abi.abi import decode
from hypothesis import example, given
from hypothesis import strategies as st
from tests.rigs.values import a_key, a_word, an_address

from foretell.domain.contracts.calldata import CREATE_PROXY, EXEC_TRANSACTION
from foretell.domain.errors.families import IllegalTransition
from foretell.domain.evm.raw_transaction import Fees, TxFields, sign_tx
from foretell.domain.evm.transaction import SentTx, TxAttempt, TxStatus
from foretell.domain.relay.request import (
    CREATE_GAS,
    DEAD,
    OPEN,
    RELAY_GAS_MAX,
    RELAY_TRANSITIONS,
    RelayKind,
    RelayRequest,
    RelayState,
    RelayTrigger,
    advance_relay,
    moved_relay,
    next_safe_nonce,
    relay_gas,
    seen_trigger,
)
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import ZERO_ADDRESS

PAIRS = list(product(RelayState, RelayTrigger))
WALLET, OWNER, TOKENS = an_address("wallet"), an_address("owner"), an_address("tokens")
SIGNATURE = b"\x01" * 32 + b"\x02" * 32 + b"\x1f"


def a_request(**fields: Any) -> RelayRequest:
    request = RelayRequest(
        transaction_id="request-1",
        kind=RelayKind.SAFE,
        owner=OWNER,
        submitter=OWNER,
        wallet=WALLET,
        target=TOKENS,
        calldata=b"\x01\x02\x03",
        operation=0,
        safe_nonce=7,
        signature=SIGNATURE,
        digest=a_word("digest"),
        gas=500_000,
        metadata=None,
        created_at_ms=1000,
        updated_at_ms=1000,
    )
    return replace(request, **fields)


def a_carrier(status: TxStatus) -> SentTx:
    fees, key = Fees(100, 10), a_key("relayer")
    signed = sign_tx(TxFields(80002, 4, fees, 21000, WALLET, b"\x01"), key)
    return SentTx(
        tx_id="relay:request-1",
        sender=address_of_key(key),
        account_nonce=4,
        target=WALLET,
        calldata=b"\x01",
        gas=21000,
        status=status,
        attempts=(TxAttempt(signed.tx_hash, signed.raw, fees, 1000),),
        created_at_ms=1000,
        updated_at_ms=1000,
    )


@pytest.mark.parametrize(
    ("state", "trigger"), [pair for pair in PAIRS if pair in RELAY_TRANSITIONS]
)
def test_a_listed_transition_leads_to_its_status(state: RelayState, trigger: RelayTrigger) -> None:
    assert advance_relay(state, trigger) is RELAY_TRANSITIONS[state, trigger]


@pytest.mark.parametrize(
    ("state", "trigger"), [pair for pair in PAIRS if pair not in RELAY_TRANSITIONS]
)
def test_any_other_step_is_refused(state: RelayState, trigger: RelayTrigger) -> None:
    with pytest.raises(IllegalTransition, match="relay request"):
        advance_relay(state, trigger)


def test_only_open_requests_move() -> None:
    assert {state for state, _ in RELAY_TRANSITIONS} == OPEN
    assert set(RelayState) == OPEN | DEAD | {RelayState.CONFIRMED}


@pytest.mark.parametrize(("state", "status"), list(product(sorted(OPEN), TxStatus)))
@pytest.mark.parametrize("is_done", [True, False])
def test_every_trigger_of_a_carrying_transaction_is_in_the_table(
    state: RelayState, status: TxStatus, *, is_done: bool
) -> None:
    trigger = seen_trigger(state, a_carrier(status), is_done=is_done)
    assert trigger is None or (state, trigger) in RELAY_TRANSITIONS


@pytest.mark.parametrize(
    ("state", "status", "trigger"),
    [
        (RelayState.NEW, TxStatus.PENDING, None),
        (RelayState.NEW, TxStatus.SENT, RelayTrigger.EXECUTE),
        (RelayState.NEW, TxStatus.MINED, RelayTrigger.MINE),
        (RelayState.NEW, TxStatus.CONFIRMED, RelayTrigger.CONFIRM),
        (RelayState.NEW, TxStatus.CANCELED, RelayTrigger.FAIL),
        (RelayState.NEW, TxStatus.REVERTED, RelayTrigger.EXECUTE),
        (RelayState.EXECUTED, TxStatus.SENT, None),
        (RelayState.EXECUTED, TxStatus.REVERTED, None),
        (RelayState.EXECUTED, TxStatus.MINED, RelayTrigger.MINE),
        (RelayState.EXECUTED, TxStatus.FAILED, RelayTrigger.FAIL),
        (RelayState.MINED, TxStatus.MINED, None),
        (RelayState.MINED, TxStatus.SENT, RelayTrigger.UNMINE),
        (RelayState.MINED, TxStatus.REVERTED, RelayTrigger.UNMINE),
        (RelayState.MINED, TxStatus.CONFIRMED, RelayTrigger.CONFIRM),
        (RelayState.MINED, TxStatus.FAILED, RelayTrigger.FAIL),
    ],
)
def test_a_request_follows_its_carrier(
    state: RelayState, status: TxStatus, trigger: RelayTrigger | None
) -> None:
    assert seen_trigger(state, a_carrier(status), is_done=True) is trigger


@pytest.mark.parametrize(
    ("state", "status", "trigger"),
    [
        (RelayState.EXECUTED, TxStatus.MINED, None),
        (RelayState.NEW, TxStatus.MINED, RelayTrigger.EXECUTE),
        (RelayState.EXECUTED, TxStatus.CONFIRMED, RelayTrigger.FAIL),
        (RelayState.MINED, TxStatus.CONFIRMED, RelayTrigger.FAIL),
        (RelayState.EXECUTED, TxStatus.SENT, None),
    ],
)
def test_a_mined_transaction_with_a_failed_call_is_a_failure(
    state: RelayState, status: TxStatus, trigger: RelayTrigger | None
) -> None:
    assert seen_trigger(state, a_carrier(status), is_done=False) is trigger


def test_a_move_records_its_time_and_failure() -> None:
    failed = moved_relay(a_request(), RelayTrigger.REFUSE, 2000, "reverts")
    assert (failed.state, failed.failure, failed.updated_at_ms) == (
        RelayState.INVALID,
        "reverts",
        2000,
    )
    assert failed.created_at_ms == 1000


@pytest.mark.parametrize("state", sorted(OPEN))
def test_an_open_request_claims_its_nonce(state: RelayState) -> None:
    assert a_request(state=state).claim == f"{WALLET}:7"


def test_an_open_creation_request_claims_the_wallets_creation() -> None:
    assert a_request(safe_nonce=None).claim == f"{WALLET}:create"


@pytest.mark.parametrize("state", sorted(set(RelayState) - OPEN))
def test_an_ended_request_claims_nothing(state: RelayState) -> None:
    assert a_request(state=state).claim is None


def test_a_transaction_is_carried_to_the_wallet_with_its_signature() -> None:
    outgoing = a_request(operation=1).outgoing()
    assert (outgoing.tx_id, outgoing.target, outgoing.gas) == ("relay:request-1", WALLET, 500_000)
    assert outgoing.calldata[:4].hex() == "6a761202"
    assert decode(EXEC_TRANSACTION.inputs, outgoing.calldata[4:]) == (
        TOKENS,
        0,
        b"\x01\x02\x03",
        1,
        0,
        0,
        0,
        ZERO_ADDRESS,
        ZERO_ADDRESS,
        SIGNATURE,
    )


def test_a_creation_request_is_sent_to_the_factory() -> None:
    request = a_request(kind=RelayKind.SAFE_CREATE, safe_nonce=None, gas=CREATE_GAS)
    outgoing = request.outgoing()
    assert (outgoing.target, outgoing.gas) == (TOKENS, CREATE_GAS)
    assert outgoing.calldata[:4].hex() == "a1884d2c"
    parts = (0x1F, b"\x01" * 32, b"\x02" * 32)
    assert decode(CREATE_PROXY.inputs, outgoing.calldata[4:]) == (
        ZERO_ADDRESS,
        0,
        ZERO_ADDRESS,
        parts,
    )


@given(calls=st.integers(1, 100), calldata_bytes=st.integers(0, 10**6))
def test_more_work_may_burn_more_gas_up_to_a_bound(calls: int, calldata_bytes: int) -> None:
    gas = relay_gas(calls, calldata_bytes)
    assert gas <= relay_gas(calls + 1, calldata_bytes) <= RELAY_GAS_MAX
    assert gas <= relay_gas(calls, calldata_bytes + 1)


@given(used=st.integers(0, 50), claimed=st.frozensets(st.integers(0, 60)))
@example(used=3, claimed=frozenset({1, 3, 4, 6}))
def test_the_next_nonce_is_the_first_that_is_neither_used_nor_claimed(
    used: int, claimed: frozenset[int]
) -> None:
    nonce = next_safe_nonce(used, claimed)
    assert nonce >= used
    assert nonce not in claimed
    assert set(range(used, nonce)) <= claimed


def test_a_conversion_gets_the_highest_gas_limit() -> None:
    assert relay_gas(1, 100, may_convert=True) == RELAY_GAS_MAX
