import pytest
from tests.rigs.sandbox import Sandbox

from foretell.chain.artifacts import reason_of
from foretell.chain.reader import Payouts
from foretell.chain.rpc_types import chain_tx_of
from foretell.chain.views import ViewCall, call_view
from foretell.domain.contracts.calldata import (
    ALLOWANCE_UNITS_MAX,
    INCREMENT_NONCE,
    PRICE_NO,
    PRICE_UNKNOWN,
    Approve,
    Transfer,
    encode_set_metadata,
)
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.sandbox_accounts import CREATOR_UNITS, TRADER_UNITS, AccountRole
from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.evm.abi import contract_function
from foretell.domain.relay.request import CALL_GAS
from foretell.domain.values.hexadecimal import ZERO_BYTES32, Address
from foretell.domain.values.tokens import TokenPair, condition_id

pytestmark = pytest.mark.anyio

EMPTY_ACCOUNT = Address("0x" + "99" * 20)
UNITS = 5_000_000


async def test_collateral_and_allowance_are_those_of_the_token(fresh_sandbox: Sandbox) -> None:
    reader, trader = fresh_sandbox.reader, fresh_sandbox.trader()
    assert await reader.collateral_units(trader.address) == TRADER_UNITS
    assert await reader.collateral_units(EMPTY_ACCOUNT) == 0
    assert await reader.allowance_units(trader.address, EMPTY_ACCOUNT) == 0
    approval = Approve(EMPTY_ACCOUNT, 77).encode()
    await fresh_sandbox.call(trader, fresh_sandbox.deployment.collateral, approval)
    assert await reader.allowance_units(trader.address, EMPTY_ACCOUNT) == 77


async def test_token_balances_are_returned_in_the_order_of_the_request(
    fresh_sandbox: Sandbox,
) -> None:
    market = await fresh_sandbox.ask()
    trader = fresh_sandbox.trader()
    await fresh_sandbox.split(trader, market, UNITS)
    yes, no = str(market.tokens.yes), str(market.tokens.no)
    holdings = [
        (trader.address, yes),
        (EMPTY_ACCOUNT, yes),
        (trader.address, no),
        (trader.address, "12"),
    ]
    assert await fresh_sandbox.reader.token_units(holdings) == [UNITS, 0, UNITS, 0]
    assert await fresh_sandbox.reader.token_units(holdings * 200) == [UNITS, 0, UNITS, 0] * 200
    assert await fresh_sandbox.reader.token_units([]) == []


async def test_an_operator_may_move_tokens_once_it_is_approved(fresh_sandbox: Sandbox) -> None:
    trader, exchange = fresh_sandbox.trader(), fresh_sandbox.deployment.exchange
    assert not await fresh_sandbox.is_approved(trader.address, exchange)
    await fresh_sandbox.allow(trader, exchange)
    assert await fresh_sandbox.is_approved(trader.address, exchange)
    allowance = await fresh_sandbox.reader.allowance_units(trader.address, exchange)
    assert allowance == ALLOWANCE_UNITS_MAX


async def test_a_question_with_its_condition_and_tokens_exists_once_asked(
    fresh_sandbox: Sandbox,
) -> None:
    reader = fresh_sandbox.reader
    market = await fresh_sandbox.ask("Will it snow?")
    question = await reader.question(market.question_id)
    assert question is not None
    creator = fresh_sandbox.account(AccountRole.CREATOR)
    assert question.creator == creator.address
    expected = f"Will it snow?,initializer:{creator.address[2:]}"
    assert question.ancillary_data.decode() == expected
    assert question.reward_token == fresh_sandbox.deployment.collateral
    assert not question.is_resolved
    assert question.asked_at_s > 0
    assert await reader.is_registered(market.tokens, market.condition_id)
    spent = CREATOR_UNITS - await reader.collateral_units(creator.address)
    assert spent == fresh_sandbox.deployment.creation.fee_units
    assert spent == await reader.creation_fee_units()


async def test_an_adapter_of_an_earlier_version_states_no_ends(sandbox: Sandbox) -> None:
    """Any other contract answers like one: it has no such function."""
    deployment = sandbox.deployment
    adapter = deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
    assert await sandbox.reader.states_end(adapter)
    for other in (deployment.address(ContractName.OPTIMISTIC_RESOLUTION_ADAPTER), EMPTY_ACCOUNT):
        assert not await sandbox.reader.states_end(other)


async def test_unknown_questions_and_markets_are_none(sandbox: Sandbox) -> None:
    reader = sandbox.reader
    assert await reader.question(ZERO_BYTES32) is None
    assert await reader.market_entry(ZERO_BYTES32) is None
    assert await reader.payouts(ZERO_BYTES32) is None
    assert not await reader.is_registered(TokenPair(12, 13), ZERO_BYTES32)
    assert await reader.safe(EMPTY_ACCOUNT) is None
    assert await reader.code(EMPTY_ACCOUNT) == b""
    assert await reader.proposer_whitelist(EMPTY_ACCOUNT) is None
    assert await reader.header("0xffffff") is None


async def test_a_pair_that_is_the_wrong_way_round_is_not_registered(
    fresh_sandbox: Sandbox,
) -> None:
    market = await fresh_sandbox.ask()
    wrong = TokenPair(market.tokens.yes, market.tokens.yes)
    assert not await fresh_sandbox.reader.is_registered(wrong, market.condition_id)
    assert not await fresh_sandbox.reader.is_registered(market.tokens, ZERO_BYTES32)


@pytest.mark.parametrize(
    ("price", "payouts"),
    [(PRICE_NO, Payouts(0, 1, 1)), (PRICE_UNKNOWN, Payouts(1, 1, 2))],
)
async def test_payouts_are_there_once_the_proposer_answered(
    fresh_sandbox: Sandbox, price: int, payouts: Payouts
) -> None:
    market = await fresh_sandbox.ask()
    assert await fresh_sandbox.reader.payouts(market.condition_id) is None
    await fresh_sandbox.answer(market, price)
    assert await fresh_sandbox.reader.payouts(market.condition_id) == payouts
    question = await fresh_sandbox.reader.question(market.question_id)
    assert question is not None
    assert question.is_resolved


async def test_a_condition_with_three_outcomes_has_no_payouts_of_two(
    fresh_sandbox: Sandbox,
) -> None:
    oracle, tokens = fresh_sandbox.trader(), fresh_sandbox.deployment.conditional_tokens
    prepare = contract_function("prepareCondition(address,bytes32,uint256)")
    report = contract_function("reportPayouts(bytes32,uint256[])")
    question = bytes(32)
    calldata = prepare.encode(oracle.address, question, 3)
    await fresh_sandbox.call(oracle, tokens, calldata)
    await fresh_sandbox.call(oracle, tokens, report.encode(question, [1, 0, 0]))
    condition = condition_id(oracle.address, ZERO_BYTES32, slots=3)
    with pytest.raises(ChainInconsistent, match="3 outcomes"):
        await fresh_sandbox.reader.payouts(condition)


async def test_a_makers_nonce_counts_its_increments(fresh_sandbox: Sandbox) -> None:
    trader = fresh_sandbox.trader()
    assert await fresh_sandbox.reader.exchange_nonce(trader.address) == 0
    calldata = INCREMENT_NONCE.encode()
    await fresh_sandbox.call(trader, fresh_sandbox.deployment.exchange, calldata)
    assert await fresh_sandbox.reader.exchange_nonce(trader.address) == 1


async def test_a_safe_is_at_its_derived_address_and_belongs_to_its_owner(
    fresh_sandbox: Sandbox,
) -> None:
    owner = fresh_sandbox.trader()
    address = await fresh_sandbox.make_safe(owner)
    safe = await fresh_sandbox.reader.safe(address)
    assert safe is not None
    assert (safe.nonce, safe.threshold, safe.owners) == (0, 1, (owner.address,))
    assert safe.is_owned_by(owner.address)
    assert not safe.is_owned_by(EMPTY_ACCOUNT)
    assert not safe._replace(threshold=2).is_owned_by(owner.address)


async def test_a_revert_is_known_before_the_call_is_sent(sandbox: Sandbox) -> None:
    reader, trader = sandbox.reader, sandbox.trader()
    collateral = sandbox.deployment.collateral
    too_much = Transfer(EMPTY_ACCOUNT, TRADER_UNITS + 1).encode()
    reverted = await reader.revert_of(trader.address, collateral, too_much, CALL_GAS)
    assert reverted is not None
    assert reason_of(reverted) == "InsufficientBalance"
    enough = Transfer(EMPTY_ACCOUNT, TRADER_UNITS).encode()
    assert await reader.revert_of(trader.address, collateral, enough, CALL_GAS) is None


async def test_a_creators_whitelist_names_its_proposers(sandbox: Sandbox) -> None:
    creator = sandbox.account(AccountRole.CREATOR).address
    whitelist = await sandbox.reader.proposer_whitelist(creator)
    assert whitelist is not None
    assert whitelist.proposers == (sandbox.account(AccountRole.PROPOSER).address,)


@pytest.mark.parametrize(
    "code",
    [
        "",
        # Reverts whatever is asked.
        "60006000fd",
        # Answers one zero word whatever is asked: another creator, and no list of proposers.
        "60206000f3",
        # Answers nothing.
        "00",
    ],
)
async def test_a_whitelist_that_does_not_behave_as_one_is_none(
    fresh_sandbox: Sandbox, code: str
) -> None:
    creator = fresh_sandbox.account(AccountRole.CREATOR).address
    whitelist = await fresh_sandbox.reader.proposer_whitelist(creator)
    assert whitelist is not None
    await fresh_sandbox.rpc.send("anvil_setCode", whitelist.address, "0x" + code)
    assert await fresh_sandbox.reader.proposer_whitelist(creator) is None


async def test_a_whitelist_of_another_creator_is_none(fresh_sandbox: Sandbox) -> None:
    creator = fresh_sandbox.account(AccountRole.CREATOR).address
    whitelist = await fresh_sandbox.reader.proposer_whitelist(creator)
    assert whitelist is not None
    # The registry's map: creator to whitelist, in its first storage slot.
    registry = fresh_sandbox.deployment.address(ContractName.PROPOSER_WHITELIST_REGISTRY)
    other = fresh_sandbox.trader().address
    slot = await fresh_sandbox.rpc.call("web3_sha3", "0x" + "00" * 32 + "00" * 12 + other[2:])
    word = "0x" + "00" * 12 + whitelist.address[2:]
    await fresh_sandbox.rpc.send("anvil_setStorageAt", registry, slot, word)
    view = ViewCall(registry, contract_function("whitelistOf(address)", "(address)"), (other,))
    assert await call_view(fresh_sandbox.rpc, view) == whitelist.address
    assert await fresh_sandbox.reader.proposer_whitelist(other) is None


async def test_the_registry_has_a_markets_creator_and_metadata(
    fresh_sandbox: Sandbox,
) -> None:
    market = await fresh_sandbox.ask()
    creator = fresh_sandbox.account(AccountRole.CREATOR)
    entry = await fresh_sandbox.reader.market_entry(market.condition_id)
    assert entry == (creator.address, "")
    registry = fresh_sandbox.deployment.address(ContractName.MARKET_REGISTRY)
    calldata = encode_set_metadata(market.condition_id, "m" * 43)
    await fresh_sandbox.call(creator, registry, calldata)
    entry = await fresh_sandbox.reader.market_entry(market.condition_id)
    assert entry == (creator.address, "m" * 43)


async def test_blocks_and_transactions_are_read_as_the_node_has_them(
    fresh_sandbox: Sandbox,
) -> None:
    reader, trader = fresh_sandbox.reader, fresh_sandbox.trader()
    calldata = Approve(EMPTY_ACCOUNT, 1).encode()
    receipt = await fresh_sandbox.call(trader, fresh_sandbox.deployment.collateral, calldata)
    assert await fresh_sandbox.receipt(receipt.tx_hash) == receipt
    tx = chain_tx_of(await fresh_sandbox.rpc.call("eth_getTransactionByHash", receipt.tx_hash))
    assert tx is not None
    assert (tx.sender, tx.target, tx.calldata, tx.value_wei, tx.block_number) == (
        trader.address,
        fresh_sandbox.deployment.collateral,
        calldata,
        0,
        receipt.block_number,
    )
    header = await reader.header(hex(receipt.block_number))
    assert header is not None
    assert header.block_hash == receipt.block_hash
    assert await reader.head() >= receipt.block_number
    assert await reader.chain_id() == 80002
