"""The rows that a range of blocks adds, each written once with the block of its log."""

from dataclasses import dataclass, field

from foretell.domain.contracts.logs import (
    AnswerDisputed,
    AnswerProposed,
    ConditionPrepared,
    ConditionResolved,
    LogPlace,
    NonceIncremented,
    OrderCancelled,
    OrderFilledLog,
    OrdersCancelledBefore,
    OwnerSigningChanged,
)
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.signing.stops import TIMESTAMP_MS_MAX, StopKind
from foretell.domain.portfolio.positions import Payout
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.domain.values.tokens import TokenPair
from foretell.store.index.activities import ActivityKind, ActivityRow, ExchangeFill
from foretell.store.index.cancellations import CanceledOrder, MakerStop, RaisedNonce
from foretell.store.index.conditions import Condition, PayoutReport
from foretell.store.index.oracle_answers import Answer, AnswerStep
from foretell.store.index.trading_totals import TradedMarket

CancellationLog = OrderCancelled | NonceIncremented | OrdersCancelledBefore | OwnerSigningChanged


@dataclass(frozen=True, slots=True)
class RowBuffer:
    """New rows, in the order of the logs."""

    conditions: list[Condition] = field(default_factory=list)
    payouts: list[PayoutReport] = field(default_factory=list)
    fills: list[ExchangeFill] = field(default_factory=list)
    activities: list[ActivityRow] = field(default_factory=list)
    canceled: list[CanceledOrder] = field(default_factory=list)
    nonces: list[RaisedNonce] = field(default_factory=list)
    stops: list[MakerStop] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    traded_markets: list[TradedMarket] = field(default_factory=list)

    def add_traded_market(self, place: LogPlace, wallet: Address, condition_id: Bytes32) -> None:
        """Add a wallet's first trade in a condition."""
        self.traded_markets.append(TradedMarket(*_row_place(place), wallet, condition_id))

    def add_condition(self, place: LogPlace, log: ConditionPrepared, pair: TokenPair) -> None:
        """Add a condition and its tokens."""
        token_yes, token_no = AssetId(str(pair.yes)), AssetId(str(pair.no))
        self.conditions.append(
            Condition(
                *_row_place(place),
                condition_id=log.condition_id,
                oracle=log.oracle,
                question_id=log.question_id,
                token_yes=token_yes,
                token_no=token_no,
            )
        )

    def add_payout(self, place: LogPlace, log: ConditionResolved, payout: Payout) -> None:
        """Add an oracle's payout."""
        self.payouts.append(
            PayoutReport(
                *_row_place(place),
                condition_id=log.condition_id,
                payout_yes=payout.yes,
                payout_no=payout.no,
                tx_hash=place.tx_hash,
                timestamp_s=place.timestamp_s,
            )
        )

    def add_fill(
        self, place: LogPlace, log: OrderFilledLog, condition_id: Bytes32, exchange: Address
    ) -> None:
        """Add a fill of the exchange, and the trade of its wallet."""
        token, is_taker = AssetId(log.token_id), log.counterparty == exchange
        self.fills.append(
            ExchangeFill(
                *_row_place(place),
                order_id=log.order_id,
                wallet=log.maker,
                counterparty=log.counterparty,
                side=log.side,
                token_id=token,
                size_units=log.size_units,
                cost_units=log.cost_units,
                fee_units=log.fee_units,
                is_taker=is_taker,
                tx_hash=place.tx_hash,
            )
        )
        self.activities.append(
            ActivityRow(
                *_row_place(place),
                wallet=log.maker,
                kind=ActivityKind.TRADE,
                condition_id=condition_id,
                token_id=token,
                side=log.side,
                size_units=log.size_units,
                cost_units=log.cost_units,
                is_taker=is_taker,
                timestamp_s=place.timestamp_s,
                tx_hash=place.tx_hash,
            )
        )

    def add_cancellation(self, place: LogPlace, log: CancellationLog, exchange: Address) -> None:
        """Add a maker's cancellation at an exchange: of an order, of earlier nonces, or by a stop."""
        match log:
            case OrderCancelled():
                self.canceled.append(CanceledOrder(*_row_place(place), exchange, log.order_id))
            case NonceIncremented():
                self.nonces.append(RaisedNonce(*_row_place(place), exchange, log.maker, log.nonce))
            case OrdersCancelledBefore():
                value = min(log.timestamp_ms, TIMESTAMP_MS_MAX)
                self._add_stop(place, exchange, log.maker, StopKind.TIMESTAMP, value)
            case OwnerSigningChanged():
                value = int(not log.is_allowed)
                self._add_stop(place, exchange, log.safe, StopKind.OWNER_SIGNING, value)

    def _add_stop(
        self, place: LogPlace, exchange: Address, maker: Address, kind: StopKind, value: int
    ) -> None:
        block_number, log_index, _ = _row_place(place)
        self.stops.append(MakerStop(block_number, log_index, kind, exchange, maker, value))

    def add_answer(self, place: LogPlace, log: AnswerProposed | AnswerDisputed) -> None:
        """Add an answer that was proposed or disputed."""
        if isinstance(log, AnswerProposed):
            step, account = AnswerStep.PROPOSED, log.proposer
        else:
            step, account = AnswerStep.DISPUTED, log.disputer
        self.answers.append(
            Answer(
                *_row_place(place),
                adapter=log.adapter,
                question_id=log.question_id,
                step=step,
                account=account,
                price=str(log.price),
                timestamp_s=place.timestamp_s,
                tx_hash=place.tx_hash,
            )
        )

    def add_set_activity(
        self,
        place: LogPlace,
        wallet: Address,
        kind: ActivityKind,
        condition_id: Bytes32,
        amounts_units: tuple[int, int],
    ) -> None:
        """Add a wallet's split, merge or redemption; the amounts are tokens and collateral."""
        size_units, cost_units = amounts_units
        self.activities.append(
            ActivityRow(
                *_row_place(place),
                wallet=wallet,
                kind=kind,
                condition_id=condition_id,
                token_id=None,
                side=None,
                size_units=size_units,
                cost_units=cost_units,
                is_taker=False,
                timestamp_s=place.timestamp_s,
                tx_hash=place.tx_hash,
            )
        )


def scaled_payout(numerators: tuple[int, ...]) -> Payout:
    """Return a binary payout in 63 bits; larger numerators lose their lowest bits."""
    yes, no = numerators
    shift = max(0, max(yes, no).bit_length() - AMOUNT_UNITS_MAX.bit_length())
    return Payout(yes >> shift, no >> shift)


def _row_place(place: LogPlace) -> tuple[int, int, int]:
    """Return the key of a log's row; each log adds at most one row to a table."""
    return place.block_number, place.log_index, 0
