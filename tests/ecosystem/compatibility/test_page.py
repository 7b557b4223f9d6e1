"""The page of the documentation on clients: its sections, and the reasons in its rows."""

import pytest
from tests.ecosystem.clients import NPM_RELAYER_CLIENT, RELAYER_CLIENTS, Family
from tests.ecosystem.compatibility.page import FOR_PROXY_WALLETS, GREEN, PAGE, sections
from tests.ecosystem.compatibility.reasons import REASONS, reason_of
from tests.ecosystem.compatibility.test_trading_clients import PROGRAMS


def test_the_page_has_a_section_of_each_client_in_its_installed_version() -> None:
    relayers = [*RELAYER_CLIENTS, NPM_RELAYER_CLIENT]
    wanted = {Family(name).version() for name in (*PROGRAMS, *relayers)}
    with_proxies = (RELAYER_CLIENTS[0], NPM_RELAYER_CLIENT)
    wanted |= {Family(name).version() + FOR_PROXY_WALLETS for name in with_proxies}
    assert set(sections()) == wanted


@pytest.mark.parametrize("name", REASONS)
def test_a_reason_is_that_of_a_method_that_does_not_work(name: str) -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    methods = [line.split("`")[1] for line in rows if f"| {GREEN} |" not in line]
    assert REASONS[name] in {reason_of(method) for method in methods}
    assert any(REASONS[name] in line for line in rows)
