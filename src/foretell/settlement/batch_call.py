"""The call of the BatchSettler that settles several trades of one exchange.

A batch has at most one trade of a taker's order: the taker's fill in the transaction then says that
this trade is settled.
"""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from foretell.domain.contracts.batches import MATCH_BYTES_MAX, MATCHES_MAX, encode_settle
from foretell.domain.evm.transaction import OutgoingTx
from foretell.domain.exchange.settlement import Settlement, SettlementOptions
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, Bytes32
from foretell.settlement.match_call import Matched, match_call

BATCH_GAS: Final = 100_000
"""Gas of a batch without its matches: the transaction, and the contracts' first reads."""

SHARE_GAS: Final = 50_000
"""Gas of a match beside its own limit: its calldata, and the call that fences it."""

PASSED_ON_PARTS: Final = 63
"""A call passes on at most 63 of 64 parts of the gas, and the last match needs its whole limit."""


class BatchedTrade(NamedTuple):
    """A trade with its call of the exchange."""

    settlement: Settlement
    matched: Matched
    call: OutgoingTx

    @property
    def gas(self) -> int:
        """Its part of the gas of a batch."""
        assert self.call.gas is not None, "the gas of a match is stated"
        return self.call.gas + SHARE_GAS

    @property
    def may_share(self) -> bool:
        """Whether it may be settled together with others.

        A trade that failed goes alone, so that what follows is its own. An order that names its taker
        can be sent by that account alone.
        """
        makers = [self.matched.maker(fill) for fill in self.matched.row.trade.fills]
        takers = {order.signed.taker for order in (self.matched.taker, *makers)}
        is_new = self.settlement.attempts == 0
        return is_new and takers == {ZERO_ADDRESS} and len(self.call.calldata) <= MATCH_BYTES_MAX


def batched_trade(settlement: Settlement, matched: Matched) -> BatchedTrade:
    """Return a trade with the call that would settle it alone."""
    return BatchedTrade(settlement, matched, match_call(matched, settlement.tx_id or ""))


def in_batches(due: Sequence[BatchedTrade], options: SettlementOptions) -> list[list[BatchedTrade]]:
    """Return the trades in groups that one transaction each may settle, the groups in the order of these.

    Within a group the trades are in the order of their matches, since one may give what another has brought. A trade
    that may share none is a group of its own.
    """
    groups: list[_Group] = []
    open_by_exchange: dict[Address, _Group] = {}
    for each in due:
        may_share = each.may_share
        group = open_by_exchange.get(each.matched.exchange) if may_share else None
        if group is None or not group.fits(each, options):
            group = _Group()
            groups.append(group)
            if may_share:
                open_by_exchange[each.matched.exchange] = group
        group.add(each)
    return [sorted(group.trades, key=_match_order) for group in groups]


def in_groups(
    due: Sequence[BatchedTrade], covered: Collection[str], options: SettlementOptions
) -> tuple[list[list[BatchedTrade]], frozenset[str]]:
    """Return the groups of `in_batches`, and the covered trades that share one without a simulation.

    Groups of several trades come first, and each kind in the order of what is due, so that neither
    covered nor other trades wait for all of the others. A covered trade that would be alone joins the
    others.
    """
    batches = in_batches([each for each in due if each.settlement.trade_id in covered], options)
    together = [batch for batch in batches if len(batch) > 1]
    sharing = frozenset(each.settlement.trade_id for batch in together for each in batch)
    others = in_batches([each for each in due if each.settlement.trade_id not in sharing], options)
    place_by_id = {each.settlement.trade_id: place for place, each in enumerate(due)}
    groups = sorted(
        [*together, *others],
        key=lambda group: (
            len(group) == 1,
            min(place_by_id[each.settlement.trade_id] for each in group),
        ),
    )
    return groups, sharing


def in_places(
    groups: Sequence[Sequence[BatchedTrade]], places: int
) -> tuple[list[Sequence[BatchedTrade]], list[Sequence[BatchedTrade]]]:
    """Return the groups of several trades that go first, and all others in the order in which they follow.

    Trades that go alone, most of them again, have a right to half of the places, rounded down, however many batches wait.
    """
    alone = [group for group in groups if len(group) == 1]
    together = [group for group in groups if len(group) > 1]
    first = places - min(len(alone), places // 2)
    return together[:first], [*alone, *together[first:]]


def _match_order(batched: BatchedTrade) -> tuple[int, int]:
    row = batched.matched.row
    return row.trade.matched_at_ms, row.sequence


class _Group:
    """Trades that share a transaction, with the sums that say which other one fits."""

    def __init__(self) -> None:
        self.trades: list[BatchedTrade] = []
        self._takers: set[Bytes32] = set()
        self._gas = self._greatest = 0

    def fits(self, added: BatchedTrade, options: SettlementOptions) -> bool:
        """Return whether the trade may be added."""
        if len(self.trades) >= min(options.batch_trades_max, MATCHES_MAX):
            return False
        gas = _batch_gas(self._gas + added.gas, max(self._greatest, added.gas))
        has_other_taker = added.matched.row.trade.taker_order_id not in self._takers
        return has_other_taker and gas <= options.batch_gas_max

    def add(self, added: BatchedTrade) -> None:
        """Add a trade."""
        self.trades.append(added)
        self._takers.add(added.matched.row.trade.taker_order_id)
        self._gas += added.gas
        self._greatest = max(self._greatest, added.gas)


def batch_gas(batch: Sequence[BatchedTrade]) -> int:
    """Return the gas limit with which every match has its own."""
    return _batch_gas(sum(each.gas for each in batch), max(each.gas for each in batch))


def _batch_gas(matches_gas: int, greatest: int) -> int:
    return BATCH_GAS + matches_gas + greatest // PASSED_ON_PARTS


def batch_call(settler: Address, batch: Sequence[BatchedTrade], tx_id: str) -> OutgoingTx:
    """Return the transaction that settles trades of one exchange together."""
    (exchange,) = {each.matched.exchange for each in batch}
    limits = [each.gas - SHARE_GAS for each in batch]
    calldata = encode_settle(exchange, [each.call.calldata for each in batch], limits)
    return OutgoingTx(tx_id, settler, calldata, batch_gas(batch))
