"""Acts that anybody may do at the contracts: the index goes on behind each of them, and equals the chain's logs."""

from typing import Final

import pytest
from tests.contracts.wallets import REVERT, answer_receipts, call_of, obeying, wallet
from tests.indexer.rig import check_balances
from tests.rigs.events import SandboxEvent
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up
from tests.rigs.values import an_address

from foretell.domain.contracts.calldata import (
    SAFE_TRANSFER_FROM,
    RedeemPositions,
    SetApprovalForAll,
)
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.neg_risk import (
    CONVERT_POSITIONS,
    PREPARE_MARKET,
    SEAL_MARKET,
    SPLIT_SETS,
    question_id,
)
from foretell.domain.contracts.sandbox_accounts import SandboxAccount
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.eip712 import address_word, uint_word
from foretell.domain.values.hexadecimal import (
    Bytes32,
    address_bytes,
    keccak256,
    word_bytes,
    word_of,
)
from foretell.domain.values.tokens import INDEX_SET_NO, condition_id, token_pair
from foretell.reconciliation.verify import verify_data
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

SETS: Final = 1_000
EVERYTHING: Final = 10_000
"""The fee, in hundredths of a per cent, that leaves nothing."""
WALLET: Final = an_address("a wallet with code")

PREPARE_QUESTION: Final = contract_function("prepareQuestion(bytes32,bytes)", "(bytes32)")
PREPARE_CONDITION: Final = contract_function("prepareCondition(address,bytes32,uint256)")
REPORT_OUTCOME: Final = contract_function("reportOutcome(bytes32,bool)")


async def prepared_event(sandbox: Sandbox, stranger: SandboxAccount, fee_bips: int) -> Bytes32:
    """Prepare an event of two questions at the adapter itself, as anybody may, and return its id."""
    adapter = sandbox.deployment.address(ContractName.NEG_RISK_ADAPTER)
    await sandbox.call(stranger, adapter, PREPARE_MARKET.encode(fee_bips, b"x"))
    words = address_word(stranger.address) + uint_word(fee_bips) + uint_word(96) + uint_word(1)
    event_id = word_of(keccak256(words + b"x".ljust(32, b"\0"))[:-1] + b"\0")
    for _ in range(2):
        await sandbox.call(stranger, adapter, PREPARE_QUESTION.encode(word_bytes(event_id), b"q"))
    await sandbox.call(stranger, adapter, SEAL_MARKET.encode(word_bytes(event_id)))
    await sandbox.allow(stranger, adapter)
    first = condition_id(adapter, question_id(event_id, 0))
    await sandbox.call(stranger, adapter, SPLIT_SETS.encode(word_bytes(first), SETS))
    return event_id


async def check_index(sandbox: Sandbox, database: Database) -> None:
    """Assert that the index goes on, without an ignored log, and equals the chain."""
    step = await catch_up(an_indexer(sandbox, database))
    assert step.ignored == {}
    await check_balances(sandbox, database)
    report = await verify_data(database, sandbox.rpc, sandbox.deployment)
    assert [str(each) for each in report.differences] == []


async def test_attack_m1_a_conversion_whose_fee_takes_everything_does_not_stop_the_index(
    fresh_sandbox: Sandbox, fresh_database: Database
) -> None:
    sandbox, stranger = fresh_sandbox, fresh_sandbox.trader(0)
    event_id = await prepared_event(sandbox, stranger, EVERYTHING)
    adapter = sandbox.deployment.address(ContractName.NEG_RISK_ADAPTER)
    await sandbox.call(stranger, adapter, CONVERT_POSITIONS.encode(word_bytes(event_id), 1, SETS))
    await check_index(sandbox, fresh_database)


@pytest.mark.parametrize("is_in_one_range", [True, False])
async def test_attack_m1_a_condition_behind_the_last_question_of_an_event_does_not_stop_the_index(
    fresh_sandbox: Sandbox, fresh_database: Database, *, is_in_one_range: bool
) -> None:
    sandbox = fresh_sandbox
    event = await SandboxEvent.ask(sandbox)
    honest, stranger = sandbox.trader(0), sandbox.trader(1)
    await sandbox.allow(honest, event.adapter)
    await event.split(honest, 0, SETS)
    event_id = event.markets[0].neg_risk_market_id
    assert event_id is not None
    question = word_bytes(question_id(event_id, len(event.markets)))
    tokens = sandbox.deployment.conditional_tokens
    await sandbox.call(stranger, tokens, PREPARE_CONDITION.encode(event.adapter, question, 2))
    if not is_in_one_range:
        await check_index(sandbox, fresh_database)
        wrapped = sandbox.deployment.address(ContractName.WRAPPED_COLLATERAL)
        yes = token_pair(wrapped, condition_id(event.adapter, word_of(question))).yes
        nothing = SAFE_TRANSFER_FROM.encode(stranger.address, honest.address, yes, 0, b"")
        await sandbox.call(stranger, tokens, nothing)
    await event.convert(honest, 0b001, SETS)
    await check_index(sandbox, fresh_database)


async def test_attack_m1_a_wallet_that_redeems_while_it_converts_does_not_stop_the_index(
    fresh_sandbox: Sandbox, fresh_database: Database
) -> None:
    sandbox, owner = fresh_sandbox, fresh_sandbox.trader(0)
    deployment = sandbox.deployment
    tokens = deployment.conditional_tokens
    adapter = deployment.address(ContractName.NEG_RISK_ADAPTER)
    wrapped = deployment.address(ContractName.WRAPPED_COLLATERAL)
    event_id = await prepared_event(sandbox, owner, 0)
    question = question_id(event_id, 0)
    first = condition_id(adapter, question)

    redeem = RedeemPositions(wrapped, first, (INDEX_SET_NO,)).encode()
    on_receipt = call_of(tokens, redeem) + answer_receipts()
    code = wallet(REVERT, obeying(owner.address, on_receipt), redeem)
    await sandbox.rpc.send("anvil_setCode", WALLET, "0x" + code.hex())
    no = token_pair(wrapped, first).no
    given = SAFE_TRANSFER_FROM.encode(owner.address, WALLET, no, SETS, b"")
    await sandbox.call(owner, tokens, given)
    allow = SetApprovalForAll(adapter, is_approved=True).encode()
    await sandbox.call(owner, WALLET, address_bytes(tokens) + allow)
    await sandbox.call(owner, adapter, REPORT_OUTCOME.encode(word_bytes(question), False))  # noqa: FBT003
    convert = CONVERT_POSITIONS.encode(word_bytes(event_id), 1, SETS)
    await sandbox.call(owner, WALLET, address_bytes(adapter) + convert)

    await check_index(sandbox, fresh_database)
    assert await sandbox.reader.token_units([(WALLET, str(no))]) == [0]
