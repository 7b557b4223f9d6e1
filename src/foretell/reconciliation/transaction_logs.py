"""One transaction, read log by log: which tokens moved, and which log says why.

Rules are those of the reference page of the indexer. Tokens move first, and the log that says why comes later:
it belongs to the newest move without a reason that has its wallet, its token and its amount.
"""

from collections.abc import Callable
from typing import Final

from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN, QUESTIONS_EVER_MAX
from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, keccak256
from foretell.reconciliation.answer_logs import read_answer
from foretell.reconciliation.chain_figures import (
    CASH,
    ChainFigures,
    CountedCondition,
    CountedPayout,
    CountedTrade,
)
from foretell.reconciliation.fetched_logs import FetchedLog, address_in, topic_of, word_text
from foretell.reconciliation.holdings import UNITS_MAX, arrived, gone, transferred
from foretell.reconciliation.permission_logs import read_permission
from foretell.reconciliation.transaction_moves import Direction, TransactionMoves

BINARY: Final = 2
PLAIN_WORDS: Final = 5
"""The data words of a fill of the first order struct; the second has two more."""

FILLED_OF_SECOND_STRUCT: Final = (
    "OrderFilled(bytes32,address,address,uint8,uint256,uint256,uint256,uint256,bytes32,bytes32)"
)

TokenIds = dict[str, tuple[str, str]]
"""The tokens of conditions: Yes and No."""

UNKNOWN_PAYOUT: Final = CountedPayout(1, 1, 0, "", 0)
"""How a redemption is divided when no report was seen."""


class TransactionLogs:
    """The reading of one transaction into the figures."""

    def __init__(self, figures: ChainFigures, token_ids: TokenIds, at_s: int) -> None:
        self._figures = figures
        self._token_ids = token_ids
        self._at_s = at_s
        self._moves = TransactionMoves(figures)
        self._received: list[str] = []
        """The conditions of which the adapter has sent No away, since the last conversion: their Yes is given for it."""

    def read(self, log: FetchedLog) -> None:
        """Apply the next log; those of no interest are passed over."""
        kind = self._kind(log.contract)
        reading = READINGS.get((kind, log.topics[0] if log.topics else 0))
        try:
            if reading is not None:
                reading(self, log)
            read_permission(self._figures, kind, log)
            read_answer(self._figures, kind, log, self._at_s)
        except (IndexError, ValueError) as error:
            raise ChainInconsistent(
                f"log {log.log_index} of {log.tx_hash} has another shape"
            ) from error

    def close(self) -> None:
        """Apply all moves to the positions."""
        self._moves.close()

    def _kind(self, contract: str) -> str:
        contracts = self._figures.contracts
        if contract in contracts.exchanges:
            return "exchange"
        named = {
            contracts.collateral: "cash",
            contracts.tokens: "tokens",
            contracts.adapter: "event",
            contracts.oracle: "oracle",
        }
        return named.get(contract, "")

    def paid(self, log: FetchedLog) -> None:
        """Collateral moved."""
        if log.words[0] <= UNITS_MAX:
            sender, receiver = map(address_in, log.topics[1:3])
            self._figures.move(sender, receiver, CASH, log.words[0])

    def moved_one(self, log: FetchedLog) -> None:
        """Tokens of one id moved."""
        self._moved(log, str(log.words[0]), log.words[1])

    def moved_many(self, log: FetchedLog) -> None:
        """Tokens of several ids moved."""
        for token, units in zip(log.numbers(0), log.numbers(1), strict=True):
            self._moved(log, str(token), units)

    def _moved(self, log: FetchedLog, token: str, units: int) -> None:
        figures = self._figures
        if token not in figures.outcomes or not 0 < units <= UNITS_MAX:
            return
        operator, sender, receiver = map(address_in, log.topics[1:4])
        figures.move(sender, receiver, token, units)
        if operator in figures.contracts.exchanges:
            self._moves.add_of_exchange((sender, token), -units)
            self._moves.add_of_exchange((receiver, token), units)
        elif figures.contracts.adapter and operator == figures.contracts.adapter:
            self._moves.add(Direction((sender, token), is_in=False, is_of_event=True), units)
            self._moves.add(Direction((receiver, token), is_in=True, is_of_event=True), units)
            if receiver == NO_TOKEN_BURN:
                condition_id = figures.outcomes[token][0]
                figures.convert(condition_id, units)
                if sender == operator:
                    self._received.append(condition_id)
        elif sender == ZERO_ADDRESS:
            self._moves.add(Direction((receiver, token), is_in=True, is_of_event=False), units)
        elif receiver == ZERO_ADDRESS:
            self._moves.add(Direction((sender, token), is_in=False, is_of_event=False), units)
        else:
            self._moves.add_transfer(sender, receiver, token, units)

    def prepared(self, log: FetchedLog) -> None:
        """A condition was prepared; those that are not binary do not count."""
        if log.words[0] == BINARY:
            condition_id, oracle = word_text(log.topics[1]), address_in(log.topics[2])
            yes, no = self._token_ids[condition_id]
            backing = self._figures.contracts.backing(oracle)
            question = word_text(log.topics[3])
            self._figures.add_condition(
                condition_id, CountedCondition(oracle, question, yes, no, backing)
            )

    def resolved(self, log: FetchedLog) -> None:
        """An oracle reported a payout."""
        figures, condition_id = self._figures, word_text(log.topics[1])
        if (condition := figures.conditions.get(condition_id)) is None:
            return
        yes, no = log.numbers(1)
        while max(yes, no) > UNITS_MAX:
            yes, no = yes >> 1, no >> 1
        figures.payouts[condition_id] = CountedPayout(
            yes, no, self._at_s, log.tx_hash, log.block_number
        )
        if condition.oracle == figures.contracts.adapter and yes:
            figures.lock(condition_id, figures.released[condition_id])

    def split(self, log: FetchedLog) -> None:
        """Collateral became complete sets."""
        self._sets(log, is_in=True)

    def merged(self, log: FetchedLog) -> None:
        """Complete sets became collateral."""
        self._sets(log, is_in=False)

    def _sets(self, log: FetchedLog, *, is_in: bool) -> None:
        holder, parent, condition_id = (
            address_in(log.topics[1]),
            log.topics[2],
            word_text(log.topics[3]),
        )
        condition = self._figures.conditions.get(condition_id)
        backing = condition.backing if condition else self._figures.contracts.collateral
        units = log.words[2]
        if address_in(log.words[0]) != backing:
            return
        if parent:
            if is_in:
                self._given_to_child(holder, parent, backing, units)
        elif condition is not None and units <= UNITS_MAX:
            self._figures.lock(condition_id, units if is_in else -units)
            if is_in and backing == self._figures.contracts.collateral:
                self._figures.spend(holder, log.contract, units)
            self._whole_sets(log, holder, condition_id, units if is_in else -units)

    def _given_to_child(self, holder: str, parent: int, backing: str, units: int) -> None:
        packed = bytes.fromhex(backing[2:]) + parent.to_bytes(32)
        token = str(int.from_bytes(keccak256(packed)))
        given = transferred(units, 0, is_in=False)
        self._moves.explain((holder, token), given, is_of_event=False)

    def _whole_sets(self, log: FetchedLog, holder: str, condition_id: str, change: int) -> None:
        """Complete sets of a wallet became more by this change, or fewer."""
        if holder in self._figures.contracts.without_positions or change == 0:
            return
        condition, units = self._figures.conditions[condition_id], abs(change)
        for token, money in ((condition.yes, -(-units // 2)), (condition.no, units // 2)):
            act = arrived(units, money) if change > 0 else gone(units, money)
            self._moves.explain((holder, token), act, is_of_event=self._is_of_event(log))
        self._act(log, holder, "SPLIT" if change > 0 else "MERGE", condition_id, (units, units))

    def _is_of_event(self, log: FetchedLog) -> bool:
        return log.contract == self._figures.contracts.adapter

    def redeemed(self, log: FetchedLog) -> None:
        """Tokens were redeemed at the contract itself."""
        holder, backing = address_in(log.topics[1]), address_in(log.topics[2])
        condition_id, paid = word_text(log.words[0]), log.words[2]
        condition = self._figures.conditions.get(condition_id)
        if condition is None or condition.backing != backing or log.topics[3] or paid > UNITS_MAX:
            return
        self._figures.lock(condition_id, -paid)
        if holder in self._figures.contracts.without_positions:
            return
        sets = log.numbers(1)
        amounts = tuple(
            self._moves.newest(Direction((holder, token), is_in=False, is_of_event=False))
            if index in sets
            else 0
            for index, token in ((1, condition.yes), (2, condition.no))
        )
        self._burned(log, holder, condition_id, (amounts[0], amounts[1]), paid)

    def _burned(
        self, log: FetchedLog, holder: str, condition_id: str, amounts: tuple[int, int], paid: int
    ) -> None:
        condition = self._figures.conditions[condition_id]
        payout = self._figures.payouts.get(condition_id, UNKNOWN_PAYOUT)
        of_yes = amounts[0] * payout.yes // (payout.yes + payout.no)
        for_yes = min(paid, of_yes) if amounts[1] else paid
        for token, units, money in (
            (condition.yes, amounts[0], for_yes),
            (condition.no, amounts[1], paid - for_yes),
        ):
            if units:
                of_event = self._is_of_event(log)
                self._moves.explain((holder, token), gone(units, money), is_of_event=of_event)
        if any(amounts):
            self._act(log, holder, "REDEEM", condition_id, (sum(amounts), paid))

    def event_split(self, log: FetchedLog) -> None:
        """Collateral became complete sets of an event's question."""
        self._event_sets(log, is_in=True)

    def event_merged(self, log: FetchedLog) -> None:
        """Complete sets of an event's question became collateral."""
        self._event_sets(log, is_in=False)

    def _event_sets(self, log: FetchedLog, *, is_in: bool) -> None:
        condition_id, units = word_text(log.topics[2]), log.words[0]
        if condition_id in self._figures.conditions and units <= UNITS_MAX:
            holder = address_in(log.topics[1])
            if is_in:
                self._figures.spend(holder, log.contract, units)
            self._whole_sets(log, holder, condition_id, units if is_in else -units)

    def event_redeemed(self, log: FetchedLog) -> None:
        """Tokens of an event's question were redeemed."""
        condition_id, paid = word_text(log.topics[2]), log.words[1]
        yes, no = log.numbers(0)
        if condition_id in self._figures.conditions and max(yes, no, paid) <= UNITS_MAX:
            self._burned(log, address_in(log.topics[1]), condition_id, (yes, no), paid)

    def converted(self, log: FetchedLog) -> None:
        """No tokens of some questions became Yes tokens of the others, and collateral."""
        holder, units, index_set = address_in(log.topics[1]), log.words[0], log.topics[3]
        received, self._received = self._received, []
        given = self._given_in(log.topics[2], index_set)
        if units > UNITS_MAX or not given:
            return
        cost_of_yes = units // (len(given) + len(received))
        proceeds = (len(given) - 1) * units + len(received) * cost_of_yes
        for place, condition_id in enumerate(given):
            part = proceeds // len(given) + (place < proceeds % len(given))
            token = self._figures.conditions[condition_id].no
            self._moves.explain((holder, token), gone(units, part), is_of_event=True)
        for condition_id in received:
            holding = holder, self._figures.conditions[condition_id].yes
            more = self._moves.newest(Direction(holding, is_in=True, is_of_event=True))
            self._moves.explain(holding, arrived(more, cost_of_yes), is_of_event=True)
        amounts = len(given) * units, (len(given) - 1) * units
        self._act(log, holder, "CONVERSION", given[0], amounts)

    def _given_in(self, event: int, index_set: int) -> list[str]:
        questions = [
            word_text(event & ~0xFF | index)
            for index in range(QUESTIONS_EVER_MAX)
            if index_set >> index & 1
        ]
        conditions = map(self._figures.condition_by_question.get, questions)
        return [condition_id for condition_id in conditions if condition_id is not None]

    def filled(self, log: FetchedLog) -> None:
        """An order was filled."""
        words = log.words
        if len(words) == PLAIN_WORDS:
            is_buy, token = words[0] == 0, str(words[0] or words[1])
        else:
            is_buy, token = words[0] == 0, str(words[1])
        size, cost = (words[3], words[2]) if is_buy else (words[2], words[3])
        outcome = self._figures.outcomes.get(token)
        if outcome is None or max(size, cost) > UNITS_MAX:
            return
        wallet, fee = address_in(log.topics[2]), words[4]
        if is_buy:
            self._figures.spend(wallet, log.contract, cost)
        act = arrived(size - fee, cost) if is_buy else gone(size, cost - fee)
        direction = Direction((wallet, token), is_buy, is_of_event=False)
        self._moves.add(direction, act.units, act)
        self._moves.add_of_exchange((wallet, token), -act.units if is_buy else act.units)
        if size:
            self._figures.prices[token] = cost, size
        self._add_fill(log, outcome[0], (token, "BUY" if is_buy else "SELL", size, cost, fee))

    def _add_fill(
        self, log: FetchedLog, condition_id: str, terms: tuple[str, str, int, int, int]
    ) -> None:
        token, side, size, cost, fee = terms
        place = log.block_number, log.log_index
        wallet, other = address_in(log.topics[2]), address_in(log.topics[3])
        is_taker = other == log.contract
        order = word_text(log.topics[1])
        self._figures.fills[place] = (
            *(order, wallet, other, side, token, size, cost, fee, is_taker),
            log.tx_hash,
        )
        self._figures.acts[place] = (
            *(wallet, "TRADE", condition_id, token, side, size, cost, is_taker),
            *(self._at_s, log.tx_hash),
        )
        self._figures.add_trade(place, CountedTrade(wallet, condition_id, cost))

    def _act(
        self, log: FetchedLog, wallet: str, kind: str, condition_id: str, amounts: tuple[int, int]
    ) -> None:
        self._figures.acts[log.block_number, log.log_index] = (
            *(wallet, kind, condition_id, None, None, *amounts, False),
            *(self._at_s, log.tx_hash),
        )


READINGS: Final[dict[tuple[str, int], Callable[[TransactionLogs, FetchedLog], None]]] = {
    (kind, topic_of(signature)): reading
    for kind, signature, reading in (
        ("cash", "Transfer(address,address,uint256)", TransactionLogs.paid),
        (
            "tokens",
            "TransferSingle(address,address,address,uint256,uint256)",
            TransactionLogs.moved_one,
        ),
        (
            "tokens",
            "TransferBatch(address,address,address,uint256[],uint256[])",
            TransactionLogs.moved_many,
        ),
        (
            "tokens",
            "ConditionPreparation(bytes32,address,bytes32,uint256)",
            TransactionLogs.prepared,
        ),
        (
            "tokens",
            "ConditionResolution(bytes32,address,bytes32,uint256,uint256[])",
            TransactionLogs.resolved,
        ),
        (
            "tokens",
            "PositionSplit(address,address,bytes32,bytes32,uint256[],uint256)",
            TransactionLogs.split,
        ),
        (
            "tokens",
            "PositionsMerge(address,address,bytes32,bytes32,uint256[],uint256)",
            TransactionLogs.merged,
        ),
        (
            "tokens",
            "PayoutRedemption(address,address,bytes32,bytes32,uint256[],uint256)",
            TransactionLogs.redeemed,
        ),
        ("event", "PositionSplit(address,bytes32,uint256)", TransactionLogs.event_split),
        ("event", "PositionsMerge(address,bytes32,uint256)", TransactionLogs.event_merged),
        (
            "event",
            "PayoutRedemption(address,bytes32,uint256[],uint256)",
            TransactionLogs.event_redeemed,
        ),
        (
            "event",
            "PositionsConverted(address,bytes32,uint256,uint256)",
            TransactionLogs.converted,
        ),
        (
            "exchange",
            "OrderFilled(bytes32,address,address,uint256,uint256,uint256,uint256,uint256)",
            TransactionLogs.filled,
        ),
        (
            "exchange",
            FILLED_OF_SECOND_STRUCT,
            TransactionLogs.filled,
        ),
    )
}
"""Readings by the kind of a contract and the first topic."""
