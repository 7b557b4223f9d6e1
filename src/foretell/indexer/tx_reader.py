"""The reader of one transaction's logs: balances, allowances, activities, fills and positions.

Only tokens of known conditions in the deployment's collateral count. Logs about other tokens, about
positions under a parent collection or with amounts beyond the limit are ignored and counted by reason.
"""

from typing import Final

from foretell.domain.contracts.logs import (
    CollateralApproved,
    CollateralTransferred,
    ConditionPrepared,
    ConditionResolved,
    LogPlace,
    NonceIncremented,
    OrderCancelled,
    OrderFilledLog,
    OrdersCancelledBefore,
    OwnerSigningChanged,
    PayoutRedeemed,
    PlacedLog,
    PositionsMerged,
    PositionSplit,
    TokensApproved,
    TokensTransferred,
)
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.positions import (
    TradePrice,
    apply_all,
    merge,
    purchase,
    redeemed_units,
    redemption,
    sale,
    split,
    transfer_out,
)
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, ZERO_BYTES32, Address
from foretell.domain.values.tokens import (
    INDEX_SET_NO,
    INDEX_SET_YES,
    OUTCOME_SLOTS,
    TokenPair,
    token_id,
    token_pair,
)
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.neg_risk_reader import NegRiskReader
from foretell.indexer.row_buffer import CancellationLog, RowBuffer, scaled_payout
from foretell.indexer.state import NO_MOVE, UNLIMITED_UNITS, IndexState
from foretell.indexer.token_movements import Mover, TxMovements
from foretell.store.index.activities import ActivityKind

SetsLog = PositionSplit | PositionsMerged | PayoutRedeemed

_TOKENS: Final = Mover.CONDITIONAL_TOKENS


class TxReader:
    """Reader of the logs of one transaction, in order, into the state and the row buffer."""

    def __init__(self, contracts: IndexedContracts, state: IndexState, rows: RowBuffer) -> None:
        self._contracts = contracts
        self._state = state
        self._rows = rows
        self._movements = TxMovements()
        self._neg_risk = NegRiskReader(contracts, state, rows, self._movements)

    def read(self, placed: PlacedLog) -> None:
        """Apply the transaction's next log."""
        match placed.log:
            case CollateralTransferred() as log:
                if self._state.fits(log.amount_units):
                    self._state.move(log.sender, log.receiver, COLLATERAL, log.amount_units)
            case CollateralApproved() | TokensApproved() as log:
                self._allowed(log)
            case TokensTransferred() as log:
                self._tokens_moved(log)
            case ConditionPrepared() | ConditionResolved() as log:
                self._condition(placed.place, log)
            case PositionSplit() | PositionsMerged() | PayoutRedeemed() as log:
                self._sets(placed.place, log)
            case (
                OrderFilledLog()
                | OrderCancelled()
                | NonceIncremented()
                | OrdersCancelledBefore()
                | OwnerSigningChanged()
            ) as log:
                self._exchange(placed, log)
            case _:
                self._neg_risk.read(placed)

    def close(self) -> None:
        """Apply the transaction's token moves to the positions."""
        positions = self._state.positions
        untracked_wallets = self._contracts.untracked_wallets
        for holding, changes in self._movements.changes(self._state.price).items():
            if holding[0] not in untracked_wallets:
                positions[holding] = apply_all(positions[holding], changes)

    def _allowed(self, log: CollateralApproved | TokensApproved) -> None:
        if isinstance(log, CollateralApproved):
            key = (log.owner, log.spender, True)
            units = min(log.amount_units, UNLIMITED_UNITS)
        else:
            key = (log.owner, log.operator, False)
            units = UNLIMITED_UNITS if log.is_approved else 0
        if key[1] in self._contracts.spenders:
            self._state.allowances[key] = units

    def _spend(self, wallet: Address, spender: Address, units: int) -> None:
        if not self._contracts.announces_spending:
            self._state.spend(wallet, spender, units)

    def _tokens_moved(self, log: TokensTransferred) -> None:
        for moved, units in zip(log.token_ids, log.amounts_units, strict=True):
            token = AssetId(moved)
            if token not in self._state.outcome_by_token:
                self._state.ignore("token of no known condition")
            elif self._state.fits(units) and units > 0:
                self._state.move(log.sender, log.receiver, token, units)
                self._add_movement(log, token, units)

    def _add_movement(self, log: TokensTransferred, token: AssetId, units: int) -> None:
        movements = self._movements
        if log.operator in self._contracts.exchanges:
            movements.add_traded((log.sender, token), -units)
            movements.add_traded((log.receiver, token), units)
        elif log.operator == self._contracts.neg_risk_adapter:
            self._neg_risk.add_unattributed(log, token, units)
        elif log.sender == ZERO_ADDRESS:
            movements.add_unattributed((log.receiver, token), units, _TOKENS, is_in=True)
        elif log.receiver == ZERO_ADDRESS:
            movements.add_unattributed((log.sender, token), units, _TOKENS, is_in=False)
        else:
            price = self._state.price(token)
            movements.add_transfer(log.sender, log.receiver, token, units, price)

    def _condition(self, place: LogPlace, log: ConditionPrepared | ConditionResolved) -> None:
        if isinstance(log, ConditionPrepared):
            self._prepared(place, log)
        elif log.condition_id not in self._state.pair_by_condition:
            self._state.ignore("payout of no known condition")
        else:
            payout = scaled_payout(log.payout_numerators)
            self._state.payout_by_condition[log.condition_id] = payout
            self._neg_risk.lock_released(log, payout)
            self._rows.add_payout(place, log, payout)

    def _prepared(self, place: LogPlace, log: ConditionPrepared) -> None:
        if log.outcome_slots != OUTCOME_SLOTS:
            self._state.ignore("condition that is not binary")
            return
        collateral = self._contracts.collateral_of(log.oracle)
        pair = token_pair(collateral, log.condition_id)
        self._state.add_condition(log.condition_id, pair, collateral)
        self._rows.add_condition(place, log, pair)

    def _sets(self, place: LogPlace, log: SetsLog) -> None:
        pair = self._state.pair_by_condition.get(log.condition_id)
        backing = self._state.collateral_by_condition.get(log.condition_id)
        if log.collateral != (backing or self._contracts.collateral):
            self._state.ignore("positions in another collateral")
        elif log.parent_collection_id != ZERO_BYTES32:
            self._under_parent(log)
        elif pair is None:
            self._state.ignore("positions of no known condition")
        elif isinstance(log, PayoutRedeemed):
            if self._state.fits(log.payout_units):
                self._redeemed(place, log, pair)
        elif self._state.fits(log.amount_units):
            self._split_or_merged(place, log, pair)

    def _under_parent(self, log: SetsLog) -> None:
        """Ignore positions under an outcome of ours; splitting one gives that outcome away."""
        self._state.ignore("positions under a parent collection")
        if isinstance(log, PositionSplit):
            parent = AssetId(str(token_id(log.collateral, log.parent_collection_id)))
            given = transfer_out(log.amount_units)
            self._movements.explain((log.holder, parent), given, _TOKENS, is_in=False)

    def _split_or_merged(
        self, place: LogPlace, log: PositionSplit | PositionsMerged, pair: TokenPair
    ) -> None:
        units, is_split = log.amount_units, isinstance(log, PositionSplit)
        self._state.lock(log.condition_id, units if is_split else -units)
        if is_split and log.collateral == self._contracts.collateral:
            self._spend(log.holder, self._contracts.conditional_tokens, units)
        if log.holder in self._contracts.untracked_wallets or units == 0:
            return
        for token, is_yes in ((pair.yes, True), (pair.no, False)):
            change = split(units, is_yes=is_yes) if is_split else merge(units, is_yes=is_yes)
            holding = log.holder, AssetId(str(token))
            if not self._movements.explain(holding, change, _TOKENS, is_in=is_split):
                self._state.ignore(NO_MOVE)
        kind = ActivityKind.SPLIT if is_split else ActivityKind.MERGE
        self._rows.add_set_activity(place, log.holder, kind, log.condition_id, (units, units))

    def _redeemed(self, place: LogPlace, log: PayoutRedeemed, pair: TokenPair) -> None:
        self._state.lock(log.condition_id, -log.payout_units)
        if log.holder in self._contracts.untracked_wallets:
            return
        yes, no = (log.holder, AssetId(str(pair.yes))), (log.holder, AssetId(str(pair.no)))
        has_yes, has_no = INDEX_SET_YES in log.index_sets, INDEX_SET_NO in log.index_sets
        yes_units = self._movements.newest_units(yes, _TOKENS, is_in=False) if has_yes else 0
        no_units = self._movements.newest_units(no, _TOKENS, is_in=False) if has_no else 0
        payout = self._state.payout_of(log.condition_id)
        paid = redeemed_units(yes_units, no_units, log.payout_units, payout)
        self._movements.explain(yes, redemption(yes_units, paid.yes), _TOKENS, is_in=False)
        self._movements.explain(no, redemption(no_units, paid.no), _TOKENS, is_in=False)
        if yes_units or no_units:
            amounts = (yes_units + no_units, log.payout_units)
            kind = ActivityKind.REDEEM
            self._rows.add_set_activity(place, log.holder, kind, log.condition_id, amounts)

    def _exchange(self, placed: PlacedLog, log: OrderFilledLog | CancellationLog) -> None:
        if isinstance(log, OrderFilledLog):
            self._filled(placed, log)
        else:
            self._rows.add_cancellation(placed.place, log, placed.contract)

    def _filled(self, placed: PlacedLog, log: OrderFilledLog) -> None:
        token, is_buy = AssetId(log.token_id), log.side is Side.BUY
        outcome = self._state.outcome_by_token.get(token)
        if outcome is None:
            self._state.ignore("fill of no known condition")
            return
        if not self._state.fits(log.size_units, log.cost_units):
            return
        if is_buy:
            change = purchase(log.size_units, log.cost_units, log.fee_units)
            self._spend(log.maker, placed.contract, log.cost_units)
        else:
            change = sale(log.size_units, log.cost_units, log.fee_units)
        self._movements.add_fill((log.maker, token), change, is_in=is_buy)
        if log.size_units > 0:
            self._state.price_by_token[token] = TradePrice(log.cost_units, log.size_units)
        self._rows.add_fill(placed.place, log, outcome.condition_id, placed.contract)
        trade = log.maker, outcome.condition_id, log.cost_units, placed.place.timestamp_s
        if self._state.add_trade(*trade):
            self._rows.add_traded_market(placed.place, log.maker, outcome.condition_id)
