"""A sample of the faulty contracts; `make mutants-contracts` tries all of them."""

import pytest
from tests.contracts.evm import COMMITTED, ROOT
from tests.contracts.faulty.patches import PATCHES, Patch
from tests.contracts.faulty.score import SOURCES, Fate, contracts_of, fate_of

COUNT_MIN = 60
# A fault of a small contract part, and one that its tests do not look for.
SAMPLE = next(patch for patch in PATCHES if patch.fault == "question_id")
UNSEEN = SAMPLE._replace(
    source="access/ownership",
    text="return 1 if account == self.admin else 0",
    fault="return 2",
    tests="tests/contracts/test_collateral_token.py",
)


def test_there_are_many_faults_and_each_has_its_tests() -> None:
    assert len({patch.name for patch in PATCHES}) == len(PATCHES) >= COUNT_MIN
    assert all((ROOT / patch.tests).is_file() for patch in PATCHES)


def test_each_fault_is_in_a_contract_and_at_one_place_of_its_source() -> None:
    texts = {patch.source: (SOURCES / f"{patch.source}.vy").read_text() for patch in PATCHES}
    assert [patch.name for patch in PATCHES if texts[patch.source].count(patch.text) != 1] == []
    assert all(any(contracts_of(source)) for source in texts)


@pytest.mark.parametrize(("patch", "fate"), [(SAMPLE, Fate.KILLED), (UNSEEN, Fate.SURVIVED)])
def test_a_fault_is_killed_exactly_when_a_test_fails(patch: Patch, fate: Fate) -> None:
    assert fate_of(patch) is fate
    assert COMMITTED.is_dir()


def test_a_fault_that_does_not_compile_is_invalid() -> None:
    assert fate_of(SAMPLE._replace(fault="no_such_name")) is Fate.INVALID
