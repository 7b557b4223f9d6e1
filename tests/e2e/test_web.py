"""The web app in a real browser, on a real sandbox; pictures of it are in build/web."""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.e2e.conftest import an_installation
from tests.rigs.installation import Running

from foretell.domain.contracts.sandbox_accounts import SANDBOX_ACCOUNTS
from foretell.sdk.key_file import KeyFile

ROOT: Final = Path(__file__).parents[2]
PICTURES: Final = ROOT / "build" / "web"
STORY_DEADLINE_S: Final = 240
CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.xdist_group("e2e-web"),
    pytest.mark.skipif(
        CHROMIUM is None, reason="chromium is not installed: apt-get install chromium"
    ),
]


def play(running: Running, story: str) -> None:
    """Play a story of web/e2e; fail with what it printed."""
    assert CHROMIUM is not None
    command = [
        sys.executable,
        str(ROOT / "requirements" / "node.py"),
        "web",
        f"e2e/{story}.mjs",
    ]
    arguments = [str(running.data / "ready.json"), str(PICTURES), CHROMIUM]
    ran = subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=STORY_DEADLINE_S,
        check=False,
    )
    sys.stdout.write(ran.stdout)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture(scope="module")
async def sandbox(
    seeded_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Running]:
    """A running sandbox for all stories: they trade on markets and by wallets of their own."""
    with an_installation(tmp_path_factory.mktemp("web")) as sandbox:
        shutil.copytree(seeded_folder, sandbox.data)
        await sandbox.start()
        yield sandbox
        assert sandbox.stop() == 0, sandbox.output


async def test_every_page_works_with_a_keyboard_a_reader_and_a_small_screen(
    sandbox: Running,
) -> None:
    play(sandbox, "access")


async def test_what_goes_wrong_has_a_sentence_and_a_way_on(sandbox: Running) -> None:
    play(sandbox, "trouble")


async def test_an_owner_trades_from_its_safe_and_from_its_proxy_wallet(sandbox: Running) -> None:
    play(sandbox, "wallets")


async def test_a_page_is_soon_there_and_a_busy_book_leaves_it_alive(sandbox: Running) -> None:
    play(sandbox, "speed")


async def test_a_game_is_created_with_pictures_and_shown_as_one(sandbox: Running) -> None:
    play(sandbox, "game")


async def test_an_event_is_found_traded_by_every_type_of_order_and_looked_at(
    sandbox: Running,
) -> None:
    play(sandbox, "browse")


async def test_a_market_is_created_traded_resolved_and_redeemed_by_mouse(sandbox: Running) -> None:
    play(sandbox, "story")
    rows = list(csv.DictReader((PICTURES / "history.csv").read_text().splitlines()))
    assert [row["type"] for row in rows] == ["REDEEM", "TRADE", "TRADE"]
    assert [row["usdcSize"] for row in rows] == ["30", "4", "18"]
    kept = json.loads((PICTURES / "storage.json").read_text())
    text = json.dumps(kept).lower()
    assert [each.role for each in SANDBOX_ACCOUNTS if each.private_key.hex() in text] == []
    files = {name: value for name, value in kept["local"].items() if ".key." in name}
    assert len(files) == 4
    for name, value in files.items():
        file = msgspec.json.decode(value, type=KeyFile)
        credentials = file.unwrap(kept["session"][name])
        assert (file.content_digest(), credentials.key_id) == (file.digest, file.api_key)
        assert credentials.secret not in text


async def test_h1_shares_that_a_wallet_refused_are_claimed_by_mouse(sandbox: Running) -> None:
    play(sandbox, "claim")


async def test_a_halted_market_says_so_and_refuses_orders_until_it_resumes(
    sandbox: Running,
) -> None:
    play(sandbox, "halt")


async def test_an_event_is_converted_disputed_and_redeemed_by_mouse(sandbox: Running) -> None:
    play(sandbox, "event")  # the last: it moves the chain's clock
