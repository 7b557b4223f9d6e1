"""The neg-risk adapter's logs: activities on positions of events with one true outcome.

The adapter mints and burns those positions for others, so each move waits for the adapter's own log,
which comes last. A conversion sends No tokens to an address that never redeems them: the collateral
of their sets is released. It is locked again for the question that resolves to Yes, because all of
its Yes tokens are paid; a conversion after that releases nothing of this question. What wallets send
to that address themselves releases nothing either.
"""

from typing import Final

from foretell.domain.contracts.logs import (
    AnswerDisputed,
    AnswerProposed,
    ConditionResolved,
    EventPayoutRedeemed,
    EventSetsMerged,
    EventSetsSplit,
    LogPlace,
    PlacedLog,
    PositionsConverted,
    TokensTransferred,
)
from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN, QUESTIONS_EVER_MAX, question_id
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import (
    Change,
    Payout,
    conversion,
    merge,
    redeemed_units,
    redemption,
    split,
)
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.domain.values.tokens import TokenPair, condition_id
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.row_buffer import RowBuffer
from foretell.indexer.state import NO_MOVE, IndexState
from foretell.indexer.token_movements import Mover, TxMovements
from foretell.store.index.activities import ActivityKind

EventSetsLog = EventSetsSplit | EventSetsMerged | EventPayoutRedeemed

_ADAPTER: Final = Mover.NEG_RISK_ADAPTER


class NegRiskReader:
    """Reader of the adapter's logs in one transaction; the TxReader reads all others."""

    def __init__(
        self,
        contracts: IndexedContracts,
        state: IndexState,
        rows: RowBuffer,
        movements: TxMovements,
    ) -> None:
        self._contracts = contracts
        self._state = state
        self._rows = rows
        self._movements = movements
        self._split_for_conversion: list[Bytes32] = []

    def add_unattributed(self, log: TokensTransferred, token: AssetId, units: int) -> None:
        """Add a move by the adapter; the adapter's own log explains it later."""
        self._movements.add_unattributed((log.sender, token), units, _ADAPTER, is_in=False)
        self._movements.add_unattributed((log.receiver, token), units, _ADAPTER, is_in=True)
        if log.receiver == NO_TOKEN_BURN:
            condition = self._state.outcome_by_token[token].condition_id
            self._state.release(condition, units)
            if log.sender == self._contracts.neg_risk_adapter:
                self._split_for_conversion.append(condition)

    def lock_released(self, log: ConditionResolved, payout: Payout) -> None:
        """Lock again what conversions released, for a question that resolves to Yes."""
        if log.oracle == self._contracts.neg_risk_adapter and payout.yes:
            self._state.lock(log.condition_id, self._state.released[log.condition_id])

    def read(self, placed: PlacedLog) -> None:
        """Apply the next log of the adapter, or of the oracle that answers by proposals."""
        match placed.log:
            case EventSetsSplit() | EventSetsMerged() | EventPayoutRedeemed() as log:
                self._sets(placed.place, log)
            case PositionsConverted() as log:
                self._conversion(placed.place, log)
            case AnswerProposed() | AnswerDisputed() as log:
                self._rows.add_answer(placed.place, log)
            case _:
                """Logs that other products read."""

    def _sets(self, place: LogPlace, log: EventSetsLog) -> None:
        pair = self._state.pair_by_condition.get(log.condition_id)
        if pair is None:
            self._state.ignore("positions of no known condition")
        elif isinstance(log, EventPayoutRedeemed):
            if self._state.fits(*log.amounts_units, log.payout_units):
                self._redeemed(place, log, pair)
        elif self._state.fits(log.amount_units):
            self._split_or_merged(place, log, pair)

    def _split_or_merged(
        self, place: LogPlace, log: EventSetsSplit | EventSetsMerged, pair: TokenPair
    ) -> None:
        units, is_split = log.amount_units, isinstance(log, EventSetsSplit)
        if is_split and not self._contracts.announces_spending:
            self._state.spend(log.holder, _adapter_of(self._contracts), units)
        if log.holder in self._contracts.untracked_wallets or units == 0:
            return
        for token, is_yes in ((pair.yes, True), (pair.no, False)):
            change = split(units, is_yes=is_yes) if is_split else merge(units, is_yes=is_yes)
            self._explain((log.holder, AssetId(str(token))), change, is_in=is_split)
        kind = ActivityKind.SPLIT if is_split else ActivityKind.MERGE
        self._rows.add_set_activity(place, log.holder, kind, log.condition_id, (units, units))

    def _redeemed(self, place: LogPlace, log: EventPayoutRedeemed, pair: TokenPair) -> None:
        yes_units, no_units = log.amounts_units
        payout = self._state.payout_of(log.condition_id)
        paid = redeemed_units(yes_units, no_units, log.payout_units, payout)
        for token, units, paid_units in (
            (pair.yes, yes_units, paid.yes),
            (pair.no, no_units, paid.no),
        ):
            if units:
                holding = log.holder, AssetId(str(token))
                self._explain(holding, redemption(units, paid_units), is_in=False)
        if yes_units or no_units:
            amounts = (yes_units + no_units, log.payout_units)
            self._rows.add_set_activity(
                place, log.holder, ActivityKind.REDEEM, log.condition_id, amounts
            )

    def _conversion(self, place: LogPlace, log: PositionsConverted) -> None:
        received, self._split_for_conversion = self._split_for_conversion, []
        if not self._state.fits(log.amount_units):
            return
        given = self._given(log)
        if not given:
            self._state.ignore("conversion of no known condition")
            return
        changes = conversion(log.amount_units, len(given), len(received))
        for condition, change in zip(given, changes.given, strict=True):
            token = AssetId(str(self._state.pair_by_condition[condition].no))
            self._explain((log.holder, token), change, is_in=False)
        for condition, change in zip(received, changes.received, strict=True):
            holding = log.holder, AssetId(str(self._state.pair_by_condition[condition].yes))
            units = self._movements.newest_units(holding, _ADAPTER, is_in=True)
            if units:  # a fee may take all of it
                self._explain(holding, change._replace(size_units=units), is_in=True)
        amounts = len(given) * log.amount_units, (len(given) - 1) * log.amount_units
        self._rows.add_set_activity(place, log.holder, ActivityKind.CONVERSION, given[0], amounts)

    def _given(self, log: PositionsConverted) -> list[Bytes32]:
        """Return the event's conditions whose No was given.

        Those whose Yes was received are the ones whose other half the adapter has sent away in the same call. A known
        condition of a later question says nothing: anybody prepares conditions of the adapter at Conditional Tokens.
        """
        conditions = (
            condition_id(_adapter_of(self._contracts), question_id(log.market_id, index))
            for index in range(QUESTIONS_EVER_MAX)
            if log.index_set >> index & 1
        )
        return [each for each in conditions if each in self._state.pair_by_condition]

    def _explain(self, holding: tuple[Address, AssetId], change: Change, *, is_in: bool) -> None:
        if not self._movements.explain(holding, change, _ADAPTER, is_in=is_in):
            self._state.ignore(NO_MOVE)


def _adapter_of(contracts: IndexedContracts) -> Address:
    """Return the adapter's address; its logs are read only when there is one."""
    assert contracts.neg_risk_adapter is not None
    return contracts.neg_risk_adapter
