"""The logs that give and take permissions: allowances, approvals of all tokens, and cancellations of orders.

What a spender may still move is an allowance less what it has moved since. The collateral does not log that, so the
logs of fills and splits take it off (`ChainFigures.spend`).
"""

from collections.abc import Callable
from typing import Final

from foretell.reconciliation.chain_figures import ChainFigures
from foretell.reconciliation.fetched_logs import FetchedLog, address_in, topic_of, word_text
from foretell.reconciliation.holdings import UNITS_MAX

NONCE: Final = 0
CANCELED_BEFORE: Final = 1
SIGNED_BY_OWNER: Final = 2
"""The parts of a maker's word at an exchange."""

MILLISECONDS_MAX: Final = 2**61 - 1
"""The largest time before which orders are canceled."""

Reading = Callable[[ChainFigures, FetchedLog], None]


def read_permission(figures: ChainFigures, kind: str, log: FetchedLog) -> None:
    """Apply a log of a contract of this kind; those of no interest are passed over."""
    reading = _READINGS.get((kind, log.topics[0] if log.topics else 0))
    if reading is not None:
        reading(figures, log)


def _approved(figures: ChainFigures, log: FetchedLog) -> None:
    owner, spender = map(address_in, log.topics[1:3])
    if spender in figures.contracts.spenders:
        figures.allowances[owner, spender, True] = min(log.words[0], UNITS_MAX)


def _approved_for_all(figures: ChainFigures, log: FetchedLog) -> None:
    owner, operator = map(address_in, log.topics[1:3])
    if operator in figures.contracts.spenders:
        figures.allowances[owner, operator, False] = UNITS_MAX if log.words[0] else 0


def _canceled(figures: ChainFigures, log: FetchedLog) -> None:
    figures.canceled[log.block_number, log.log_index] = log.contract, word_text(log.topics[1])


def _nonce_raised(figures: ChainFigures, log: FetchedLog) -> None:
    _stopped(figures, log, NONCE, log.words[0])


def _canceled_before(figures: ChainFigures, log: FetchedLog) -> None:
    _stopped(figures, log, CANCELED_BEFORE, min(log.words[0], MILLISECONDS_MAX))


def _owner_signing_changed(figures: ChainFigures, log: FetchedLog) -> None:
    _stopped(figures, log, SIGNED_BY_OWNER, 0 if log.words[0] else 1)


def _stopped(figures: ChainFigures, log: FetchedLog, part: int, value: int) -> None:
    place = log.block_number, log.log_index, part
    figures.stops[place] = log.contract, address_in(log.topics[1]), value


_READINGS: Final[dict[tuple[str, int], Reading]] = {
    (kind, topic_of(signature)): reading
    for kind, signature, reading in (
        ("cash", "Approval(address,address,uint256)", _approved),
        ("tokens", "ApprovalForAll(address,address,bool)", _approved_for_all),
        ("exchange", "OrderCancelled(bytes32)", _canceled),
        ("exchange", "NonceIncremented(address,uint256)", _nonce_raised),
        ("exchange", "OrdersCancelledBefore(address,uint256)", _canceled_before),
        ("exchange", "OwnerSigningChanged(address,bool)", _owner_signing_changed),
    )
}
"""Readings by the kind of a contract and the first topic."""
