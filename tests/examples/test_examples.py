"""Every program of `examples/` runs against one sandbox, and does what it says."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.ecosystem.clients import FOLDER
from tests.examples.conftest import EXAMPLES, Play

pytestmark = [pytest.mark.xdist_group("examples"), pytest.mark.usefixtures("example_sandbox")]

SHARED = {"sandbox.py", "charts.py"}
"""Modules that examples import."""


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
    assert "closed       yes" in command("market", "show", "will-the-example-end-well")


def test_a_safe_trades_without_gas(play: Play) -> None:
    assert "tokens: [17.5, 17.5]" in play("safe_wallet.py")


def test_everything_resolved_is_redeemed(play: Play, command: Play) -> None:
    ends = ("--ends", "2035-06-01T12:00:00Z")
    command("market", "create", "--question", "Does redeeming work?", *ends)
    command("wallet", "split", "does-redeeming-work", "25")
    command("market", "resolve", "does-redeeming-work", "No")
    while '"redeemable": true' not in command("wallet", "show", "--json"):
        pass
    assert "redeemed Does redeeming work?" in play("redeem_all.py")
    assert "0 markets" in play("redeem_all.py")


def test_a_game_has_its_markets(play: Play) -> None:
    printed = play("sports_event.py")
    assert re.search(r"^spread-minus-1-5 +Brann / Molde$", printed, re.MULTILINE)
    assert re.search(r"^total-2-5 +Over / Under$", printed, re.MULTILINE)


def wait_for_tokens(command: Play, slug: str) -> None:
    """Wait until the exchange has read the split."""
    while f'"market": "{slug}"' not in command("wallet", "show", "--json", "--as", "trader:2"):
        pass


def test_an_event_that_is_too_cheap_is_bought_whole(
    play: Play, command: Play, tmp_path: Path
) -> None:
    payload = json.loads((EXAMPLES / "election.json").read_text())
    (tmp_path / "election.json").write_text(json.dumps(payload))
    made = json.loads(command("market", "create", "election.json", "--json"))
    assert [each["market"] for each in made] == ["anna", "ben"]
    slugs = [f"{payload['slug']}-{option['slug']}" for option in payload["options"]]
    for slug, price in zip(slugs, ("0.45", "0.5"), strict=True):
        command("wallet", "split", slug, "10", "--as", "trader:2")
        wait_for_tokens(command, slug)
        command(
            *("order", "place", "sell", slug, "Yes", "--price", price, "--size", "10"),
            *("--as", "trader:2"),
        )
    printed = play("event_arbitrage.py", payload["slug"])
    assert "all outcomes cost 0.95 for a payout of 1" in printed
    assert printed.count(": matched") == 2
    assert re.search(r"certain gain: 0\.50*$", printed, re.MULTILINE)


def test_a_portfolio_has_a_chart(play: Play, tmp_path: Path) -> None:
    play("first_trade.py")
    printed = play("portfolio_report.py", "chart.svg")
    while not (tmp_path / "chart.svg").exists():  # the trades are not indexed yet
        printed = play("portfolio_report.py", "chart.svg")
    assert "collateral " in printed
    assert ET.parse(tmp_path / "chart.svg").getroot().tag.endswith("svg")


def test_a_bot_written_for_polymarket_moves(play: Play) -> None:
    printed = play("from_polymarket.py", paths=str(FOLDER / "py-clob-client"))
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
