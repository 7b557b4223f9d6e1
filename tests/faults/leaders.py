"""Whether the journal has what its leaders told, once and in their order."""

from collections.abc import Iterable

from foretell.bench.rigs.leaders import Leader
from foretell.journal.postgres.rows import read_entries


def check_journal(url: str, leaders: Iterable[Leader]) -> None:
    """Check that all who were acknowledged are in the journal, and nobody twice.

    To read it checks that it has no gap, and that each entry follows the one before.
    """
    payload_by_sequence = {entry.sequence: entry.payload.decode() for entry in read_entries(url, 0)}
    payloads = list(payload_by_sequence.values())
    assert len(payloads) == len(set(payloads))
    for leader in leaders:
        assert leader.acknowledged.items() <= payload_by_sequence.items()
    numbers_by_term: dict[str, list[int]] = {}
    for payload in payloads:
        term, _, number = payload.rpartition("-")
        numbers_by_term.setdefault(term, []).append(int(number))
    for numbers in numbers_by_term.values():
        assert numbers == list(range(len(numbers)))
