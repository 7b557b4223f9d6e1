"""Every program of `examples/` runs against one sandbox, and does what it says."""

import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.ecosystem.clients import FOLDER
from tests.examples.conftest import EXAMPLES, WITHIN_S, Play, own_question, run_program
from tests.rigs.installation import Running

from foretell.sandbox.ready import read_ready
from foretell.sdk.blocking import BlockingForetell, connect
from foretell.sdk.client import KeySigner, Urls

INDEXED_WITHIN_S = 600.0
pytestmark = [pytest.mark.xdist_group("examples"), pytest.mark.usefixtures("example_sandbox")]

SHARED = {"sandbox.py", "charts.py"}
"""Modules that examples import."""


@pytest.fixture
def trader(example_sandbox: Running) -> Iterator[Callable[[int], BlockingForetell]]:
    """Give clients of the sandbox's traders, by number."""
    urls = Urls.from_ready(example_sandbox.data, {})
    keys = [each.key for each in read_ready(example_sandbox.data).accounts if each.role == "trader"]
    with ExitStack() as stack:
        yield lambda number: stack.enter_context(connect(urls, KeySigner(keys[number - 1])))


def until(is_so: Callable[[], bool]) -> None:
    """Wait until the exchange has read something from the chain."""
    deadline_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_every_example_is_played_here() -> None:
    programs = {path.name for path in EXAMPLES.glob("*.py")} - SHARED
    assert [name for name in programs if f'"{name}"' not in Path(__file__).read_text()] == []


def test_a_first_trade_settles(play: Play) -> None:
    printed = play("first_trade.py")
    assert "he receives 10 No" in printed
    assert re.search(r"the trade is CONFIRMED in 0x[0-9a-f]{64}", printed)


def test_a_market_maker_quotes_and_leaves_no_order_behind(play: Play, command: Play) -> None:
    printed = play("market_maker.py", "4")
    assert printed.count(": live, live") == 4
    assert printed.endswith("canceled 2 orders\n")
    assert command("order", "list", "--as", "trader:3") == "none\n"


def test_a_watched_book_follows_a_market_maker(play: Play, command: Play) -> None:
    command("order", "place", "buy", "rain-within-a-year", "Yes", "--price", "0.2", "--size", "7")
    assert "0.2 x 7" in play("book_watcher.py", "1")
    command("order", "cancel", "--all")


def test_a_market_is_created_and_resolved_and_a_second_run_continues(
    play: Play, command: Play
) -> None:
    assert "Yes it is: 0x" in play("create_and_resolve.py")
    give_up_at_s = time.monotonic() + INDEXED_WITHIN_S
    while "closed       yes" not in command("market", "show", "will-the-example-end-well"):
        assert time.monotonic() < give_up_at_s
        time.sleep(0.2)


def test_a_safe_trades_without_gas(play: Play) -> None:
    assert "tokens: [17.5, 17.5]" in play("safe_wallet.py")


def test_everything_resolved_is_redeemed(
    play: Play, command: Play, trader: Callable[[int], BlockingForetell]
) -> None:
    ends = ("--ends", "2035-06-01T12:00:00Z")
    question, slug = own_question("Does redeeming work?")
    command("market", "create", "--question", question, *ends)
    alice = trader(1)
    market = alice.apis.discovery.market(slug)
    alice.split(market.condition, "25")
    command("market", "resolve", slug, "No")
    until(lambda: any(row["redeemable"] for row in alice.portfolio.positions()))
    assert f"redeemed {question}" in play("redeem_all.py")
    until(lambda: not any(row["redeemable"] for row in alice.portfolio.positions()))
    assert "0 markets" in play("redeem_all.py")


def test_a_game_has_its_markets(play: Play) -> None:
    printed = play("sports_event.py")
    assert re.search(r"^spread-minus-1-5 +Brann / Molde$", printed, re.MULTILINE)
    assert re.search(r"^total-2-5 +Over / Under$", printed, re.MULTILINE)


def test_an_event_that_is_too_cheap_is_bought_whole(
    play: Play, command: Play, trader: Callable[[int], BlockingForetell], tmp_path: Path
) -> None:
    payload = json.loads((EXAMPLES / "election.json").read_text())
    shutil.copy(EXAMPLES / "election.json", tmp_path)
    made = json.loads(command("market", "create", "election.json", "--json"))
    assert [each["market"] for each in made] == ["anna", "ben"]
    bob = trader(2)
    for each, price in zip(made, ("0.45", "0.5"), strict=True):
        token = each["first token"]
        bob.split(bob.apis.discovery.market(each["condition"]).condition, "10")
        until(lambda token=token: bob.trader.token_funds(token).balance != "0")  # type: ignore[misc]
        bob.trader.sell(token, price, "10")
    printed = play("event_arbitrage.py", payload["slug"])
    assert "all outcomes cost 0.95 for a payout of 1" in printed
    assert printed.count(": matched") == 2
    assert re.search(r"certain gain: 0\.50*$", printed, re.MULTILINE)


def test_the_arbitrage_without_a_slug_prints_its_usage(play: Play) -> None:
    with pytest.raises(SystemExit, match=r"^usage: python event_arbitrage.py SLUG"):
        play("event_arbitrage.py")


def test_what_the_examples_write_is_no_untracked_file_of_a_clone() -> None:
    programs = "".join(path.read_text() for path in EXAMPLES.glob("*.py"))
    written = {"foretell-creations", *re.findall(r'sys\.argv\[1\] if .* else "(.+)"', programs)}
    ignored = (EXAMPLES.parent / ".gitignore").read_text().replace("/\n", "\n").splitlines()
    assert written == {"foretell-creations", "example-notes", "game-notes", "portfolio.svg"}
    assert written <= set(ignored)


def test_a_portfolio_has_a_chart(
    play: Play, trader: Callable[[int], BlockingForetell], tmp_path: Path
) -> None:
    play("first_trade.py")
    alice = trader(1)
    until(lambda: bool(alice.portfolio.activity(type="TRADE")))
    printed = play("portfolio_report.py", "chart.svg")
    assert "collateral " in printed
    assert ET.parse(tmp_path / "chart.svg").getroot().tag.endswith("svg")


def test_a_bot_written_for_polymarket_moves(environment: dict[str, str], folder: Path) -> None:
    """Its client has packages of its own, so it runs in a process of its own."""
    paths = f"{EXAMPLES}:{FOLDER / 'py-clob-client'}"
    line = [sys.executable, str(EXAMPLES / "from_polymarket.py")]
    printed = run_program(line, folder, environment | {"PYTHONPATH": paths})
    assert printed == "py-clob-client: live\nforetell.sdk: live\n"


def test_the_notebook_draws_prices_and_profit(play: Play, tmp_path: Path) -> None:
    """Its cells are one program; what a cell shows is the value of its last line."""
    notebook = json.loads((EXAMPLES / "history.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code")
    program = tmp_path / "notebook.py"
    shown = "import pathlib\nfor name in ('price_chart', 'profit_chart'):\n"
    shown += "    pathlib.Path(name + '.svg').write_text(globals()[name]._repr_svg_())\n"
    program.write_text("\n".join([*cells, shown]))
    play(str(program))
    for name in ("price_chart", "profit_chart"):
        assert "polyline" in (tmp_path / f"{name}.svg").read_text()
