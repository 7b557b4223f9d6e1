"""The page of the documentation on clients: its sections, and the reasons in its rows."""

import pytest
from tests.ecosystem.clients import RELAYER_CLIENTS as RELAYER_CLIENTS_IN_PYTHON
from tests.ecosystem.clients import Family
from tests.ecosystem.compatibility.page import GREEN, PAGE, sections
from tests.ecosystem.compatibility.reasons import REASONS, reason_of
from tests.ecosystem.compatibility.test_relayer_clients import TYPESCRIPT
from tests.ecosystem.compatibility.test_trading_clients import PROGRAMS


def test_the_page_has_a_section_of_each_client_in_its_installed_version() -> None:
    clients = [*PROGRAMS, *RELAYER_CLIENTS_IN_PYTHON, TYPESCRIPT]
    assert set(sections()) == {Family(name).version() for name in clients}


@pytest.mark.parametrize("name", REASONS)
def test_a_reason_is_that_of_a_method_that_does_not_work(name: str) -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    methods = [line.split("`")[1] for line in rows if f"| {GREEN} |" not in line]
    assert REASONS[name] in {reason_of(method) for method in methods}
    assert any(REASONS[name] in line for line in rows)
