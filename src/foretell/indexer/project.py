"""The projection of a range of blocks to rows: read the values that its logs touch, decide, record.

A range is written in one transaction of the database, so its tables are always those of one block.
"""

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from foretell.domain.contracts.logs import (
    CollateralApproved,
    CollateralTransferred,
    ConditionPrepared,
    ConditionResolved,
    EventPayoutRedeemed,
    EventSetsMerged,
    EventSetsSplit,
    OrderFilledLog,
    PayoutRedeemed,
    PlacedLog,
    PositionsMerged,
    PositionSplit,
    TokensApproved,
    TokensTransferred,
)
from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.portfolio.positions import NO_POSITION
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.domain.values.tokens import TokenPair, token_pair
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.neg_risk_reader import EventSetsLog
from foretell.indexer.row_buffer import RowBuffer
from foretell.indexer.state import IndexState, TrackedValues, WalletTotals
from foretell.indexer.tx_reader import SetsLog, TxReader
from foretell.store.database import Transaction
from foretell.store.index.activities import (
    load_last_prices,
    record_activities,
    record_exchange_fills,
)
from foretell.store.index.balances import (
    Allowance,
    Balance,
    LockedCollateral,
    ReleasedCollateral,
    load_allowances,
    load_balances,
    load_locked,
    load_released,
    record_allowances,
    record_balances,
    record_locked,
    record_released,
)
from foretell.store.index.blocks import Block
from foretell.store.index.cancellations import (
    record_canceled_orders,
    record_raised_nonces,
    record_stops,
)
from foretell.store.index.conditions import (
    load_conditions,
    load_conditions_of_tokens,
    load_payouts,
    record_conditions,
    record_payouts,
)
from foretell.store.index.generations import hold_live
from foretell.store.index.oracle_answers import record_answers
from foretell.store.index.positions import PositionRow, load_positions, record_positions
from foretell.store.index.supplies import load_supplies, record_supplies
from foretell.store.index.traded_volumes import UNLISTED, VolumeChange, load_exchanges
from foretell.store.index.trading_totals import (
    TradingTotals,
    load_traded_markets,
    load_traded_volumes,
    load_trading_totals,
    record_traded_markets,
    record_traded_volumes,
    record_trading_totals,
)


@dataclass(frozen=True, slots=True)
class Changes:
    """The values that changed in each block of a range, in the order of the blocks; supplies are those after the last."""

    balances: list[Balance] = field(default_factory=list)
    supplies: dict[AssetId, int] = field(default_factory=dict)
    allowances: list[Allowance] = field(default_factory=list)
    positions: list[PositionRow] = field(default_factory=list)
    locked: list[LockedCollateral] = field(default_factory=list)
    released: list[ReleasedCollateral] = field(default_factory=list)
    totals: list[TradingTotals] = field(default_factory=list)
    volumes: list[VolumeChange] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AffectedKeys:
    """The keys of all values that logs may read or change."""

    holdings: set[tuple[Address, AssetId]] = field(default_factory=set)
    allowances: set[tuple[Address, Address, bool]] = field(default_factory=set)
    condition_ids: set[Bytes32] = field(default_factory=set)
    given_tokens: set[AssetId] = field(default_factory=set)
    burned_tokens: set[AssetId] = field(default_factory=set)
    traders: set[tuple[Address, AssetId]] = field(default_factory=set)
    condition_by_token: dict[AssetId, Bytes32] = field(default_factory=dict)
    """The conditions that these logs prepare; they are in no table yet."""

    @property
    def token_ids(self) -> set[AssetId]:
        """The tokens among the holdings."""
        return {asset for _, asset in self.holdings if asset != COLLATERAL}


async def project(
    tx: Transaction,
    contracts: IndexedContracts,
    blocks: Sequence[Block],
    placed_logs: Sequence[PlacedLog],
) -> IndexState:
    """Write the rows of these blocks' logs, and return the state after them."""
    await hold_live(tx)  # the totals of wallets are read and written in the same tables
    state = await load_state(tx, contracts, touched(contracts, placed_logs))  # read
    rows, changes = apply_blocks(contracts, state, blocks, placed_logs)  # decide
    await record_conditions(tx, rows.conditions)  # record exactly what was decided
    await record_payouts(tx, rows.payouts)
    await record_exchange_fills(tx, rows.fills)
    await record_activities(tx, rows.activities)
    await record_canceled_orders(tx, rows.canceled)
    await record_raised_nonces(tx, rows.nonces)
    await record_stops(tx, rows.stops)
    await record_answers(tx, rows.answers)
    await record_balances(tx, changes.balances)
    await record_supplies(tx, changes.supplies)
    await record_allowances(tx, changes.allowances)
    await record_positions(tx, changes.positions)
    await record_locked(tx, changes.locked)
    await record_released(tx, changes.released)
    await record_trading_totals(tx, changes.totals)
    await record_traded_markets(tx, rows.traded_markets)
    await record_traded_volumes(tx, changes.volumes)
    return state


def touched(contracts: IndexedContracts, placed_logs: Iterable[PlacedLog]) -> AffectedKeys:
    """Return the keys of all values that these logs may read or change.

    Tokens that an exchange moves without a fill are given: what it kept for a wallet is claimed.
    """
    found, logs = AffectedKeys(), list(placed_logs)
    filled = {
        (placed.place.tx_hash, AssetId(placed.log.token_id))
        for placed in logs
        if isinstance(placed.log, OrderFilledLog)
    }
    for placed in logs:
        _touch(placed, found)
        if isinstance(placed.log, ConditionPrepared):
            _touch_prepared(contracts, placed.log, found)
        if isinstance(placed.log, TokensTransferred):
            if placed.log.receiver == NO_TOKEN_BURN:
                found.burned_tokens.update(map(AssetId, placed.log.token_ids))
            found.given_tokens.update(
                token
                for token in map(AssetId, placed.log.token_ids)
                if placed.log.operator not in contracts.exchanges
                or (placed.place.tx_hash, token) not in filled
            )
    return found


async def load_state(
    tx: Transaction, contracts: IndexedContracts, found: AffectedKeys
) -> IndexState:
    """Return the current values of all touched keys."""
    conditions = await load_conditions(tx, found.condition_ids)
    conditions += await load_conditions_of_tokens(tx, found.token_ids)
    condition_ids = found.condition_ids | {condition.condition_id for condition in conditions}
    paid_ids = found.condition_ids | {
        condition.condition_id
        for condition in conditions
        if condition.token_no in found.burned_tokens
    }
    state = IndexState(
        balances=TrackedValues(
            0,
            {(row.wallet, row.asset): row.units for row in await load_balances(tx, found.holdings)},
        ),
        supplies=TrackedValues(0, await load_supplies(tx, found.token_ids)),
        allowances=TrackedValues(
            0,
            {
                (row.wallet, row.spender, row.is_collateral): row.units
                for row in await load_allowances(tx, found.allowances)
            },
        ),
        positions=TrackedValues(
            NO_POSITION,
            {
                (row.wallet, row.token_id): row.position
                for row in await load_positions(tx, found.holdings)
            },
        ),
        locked=TrackedValues(
            0, {row.condition_id: row.units for row in await load_locked(tx, condition_ids)}
        ),
        released=TrackedValues(
            0, {row.condition_id: row.units for row in await load_released(tx, paid_ids)}
        ),
        totals=await _load_totals(tx, found.traders),
        payout_by_condition={
            report.condition_id: report.payout for report in await load_payouts(tx, paid_ids)
        },
    )
    for condition in conditions:
        pair = TokenPair(int(condition.token_yes), int(condition.token_no))
        collateral = contracts.collateral_of(condition.oracle)
        state.add_condition(condition.condition_id, pair, collateral)
    await _load_trades(tx, state, found)
    given = found.given_tokens & state.outcome_by_token.keys()
    state.price_by_token.update(await load_last_prices(tx, given))
    return state


async def _load_totals(
    tx: Transaction, traders: set[tuple[Address, AssetId]]
) -> TrackedValues[Address, WalletTotals]:
    loaded = await load_trading_totals(tx, {wallet for wallet, _ in traders})
    totals = {row.wallet: WalletTotals(row.trades, row.markets, row.volume_units) for row in loaded}
    return TrackedValues(WalletTotals(), totals)


async def _load_trades(tx: Transaction, state: IndexState, found: AffectedKeys) -> None:
    """Add what trades change: first trades, and volumes by exchange, also in conditions that are prepared beside them."""
    conditions = found.condition_by_token | {
        token: outcome.condition_id for token, outcome in state.outcome_by_token.items()
    }
    keys = {(wallet, conditions[token]) for wallet, token in found.traders if token in conditions}
    state.traded.update(await load_traded_markets(tx, keys))
    await load_volumes_of(tx, state, keys)


async def load_volumes_of(
    tx: Transaction,
    state: IndexState,
    keys: Collection[tuple[Address, Bytes32]],
    generation: int | None = None,
) -> None:
    """Add the exchanges of these conditions, and the wallets' volumes there, of the live generation or another."""
    exchanges = state.exchange_by_condition
    exchanges.update(await load_exchanges(tx, {condition_id for _, condition_id in keys}))
    wanted = {(wallet, exchanges.get(each, UNLISTED)) for wallet, each in keys}
    state.volumes.begin(await load_traded_volumes(tx, wanted, generation))


def apply_blocks(
    contracts: IndexedContracts,
    state: IndexState,
    blocks: Sequence[Block],
    placed_logs: Sequence[PlacedLog],
) -> tuple[RowBuffer, Changes]:
    """Apply the logs to the state; return the rows and the changes of each block."""
    rows, changes = RowBuffer(), Changes()
    logs_by_block = {
        number: list(group)
        for number, group in itertools.groupby(placed_logs, key=lambda log: log.place.block_number)
    }
    for block in blocks:
        logs = logs_by_block.get(block.block_number, ())
        for _, group in itertools.groupby(logs, key=lambda log: log.place.tx_hash):
            reader = TxReader(contracts, state, rows)
            for placed in group:
                reader.read(placed)
            reader.close()
        _close_block(state, block, changes)
    return rows, changes


def _close_block(state: IndexState, block: Block, changes: Changes) -> None:
    number = block.block_number
    changes.balances.extend(
        Balance(*holding, units, number) for holding, units in state.balances.close_block()
    )
    changes.supplies.update(state.supplies.close_block())
    changes.allowances.extend(
        Allowance(*key, units, number) for key, units in state.allowances.close_block()
    )
    changes.positions.extend(
        PositionRow(
            wallet,
            token,
            state.outcome_by_token[token].condition_id,
            position.size_units,
            position.cost_units,
            position.bought_units,
            position.spent_units,
            position.realized_units,
            block.timestamp_s,
            number,
        )
        for (wallet, token), position in state.positions.close_block()
    )
    changes.locked.extend(
        LockedCollateral(condition_id, units, number)
        for condition_id, units in state.locked.close_block()
    )
    changes.released.extend(
        ReleasedCollateral(condition_id, units, number)
        for condition_id, units in state.released.close_block()
    )
    close_trades(state, number, changes)


def close_trades(state: IndexState, number: int, changes: Changes) -> None:
    """Add the totals and volumes of wallets that a block has changed."""
    changes.totals.extend(
        TradingTotals(wallet, *totals, number) for wallet, totals in state.totals.close_block()
    )
    changes.volumes.extend(
        VolumeChange(*key, number, volume) for key, volume in state.volumes.close_block()
    )


def _touch(placed: PlacedLog, found: AffectedKeys) -> None:
    match placed.log:
        case CollateralTransferred() as log:
            found.holdings.update({(log.sender, COLLATERAL), (log.receiver, COLLATERAL)})
        case CollateralApproved() as log:
            found.allowances.add((log.owner, log.spender, True))
        case TokensApproved() as log:
            found.allowances.add((log.owner, log.operator, False))
        case TokensTransferred() as log:
            tokens = [AssetId(token) for token in log.token_ids]
            wallets = (log.sender, log.receiver)
            found.holdings.update((wallet, token) for wallet in wallets for token in tokens)
        case (
            PositionSplit()
            | PositionsMerged()
            | PayoutRedeemed()
            | EventSetsSplit()
            | EventSetsMerged()
            | EventPayoutRedeemed()
        ) as log:
            _touch_sets(placed, log, found)
        case OrderFilledLog() as log:
            found.holdings.add((log.maker, AssetId(log.token_id)))
            found.traders.add((log.maker, AssetId(log.token_id)))
            found.allowances.add((log.maker, placed.contract, True))
        case ConditionResolved() as log:
            found.condition_ids.add(log.condition_id)
        case _:
            """Logs that the indexer does not read."""


def _touch_prepared(
    contracts: IndexedContracts, log: ConditionPrepared, found: AffectedKeys
) -> None:
    pair = token_pair(contracts.collateral_of(log.oracle), log.condition_id)
    found.condition_by_token.update({AssetId(str(token)): log.condition_id for token in pair})


def _touch_sets(placed: PlacedLog, log: SetsLog | EventSetsLog, found: AffectedKeys) -> None:
    found.condition_ids.add(log.condition_id)
    found.allowances.add((log.holder, placed.contract, True))
