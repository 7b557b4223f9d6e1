"""The web app in a real browser, on a real sandbox; pictures of it are in build/web."""

import csv
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest
from tests.e2e.browser import CHROMIUM, PICTURES, play
from tests.rigs.installation import Running

from foretell.domain.contracts.sandbox_accounts import SANDBOX_ACCOUNTS
from foretell.sdk.key_file import KeyFile

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.xdist_group("e2e-web"),
    pytest.mark.skipif(
        CHROMIUM is None, reason="chromium is not installed: apt-get install chromium"
    ),
]


class Stories:
    """Stories of web/e2e in a running sandbox: they trade on markets and by wallets of their own.

    They share it until one has failed: what it left would make it fail again.
    """

    def __init__(self, seeded: Path, new_folder: Callable[[], Path]) -> None:
        self._seeded = seeded
        self._new_folder = new_folder
        self._running: Running | None = None

    async def play(self, story: str) -> None:
        """Play a story in the sandbox, which it ends where it fails."""
        try:
            play(await self._sandbox(), story)
        except (AssertionError, TimeoutError, subprocess.TimeoutExpired):
            self.end()
            raise

    async def _sandbox(self) -> Running:
        if self._running is None:
            self._running = Running(self._new_folder())
            shutil.copytree(self._seeded, self._running.data)
            await self._running.start()
        return self._running

    def end(self) -> None:
        """Stop the sandbox, if there is one."""
        running, self._running = self._running, None
        if running is None:
            return
        try:
            assert running.stop() == 0, running.output
        finally:
            running.kill()


@pytest.fixture(scope="module")
async def stories(
    seeded_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stories]:
    stories = Stories(seeded_folder, lambda: tmp_path_factory.mktemp("web"))
    try:
        yield stories
    finally:
        stories.end()


async def test_every_page_works_with_a_keyboard_a_reader_and_a_small_screen(
    stories: Stories,
) -> None:
    await stories.play("access")


async def test_what_goes_wrong_has_a_sentence_and_a_way_on(stories: Stories) -> None:
    await stories.play("trouble")


async def test_an_owner_trades_from_its_safe_and_from_its_proxy_wallet(stories: Stories) -> None:
    await stories.play("wallets")


async def test_a_page_is_soon_there_and_a_busy_book_leaves_it_alive(stories: Stories) -> None:
    await stories.play("speed")


async def test_a_game_is_created_with_pictures_and_shown_as_one(stories: Stories) -> None:
    await stories.play("game")


async def test_an_event_is_found_traded_by_every_type_of_order_and_looked_at(
    stories: Stories,
) -> None:
    await stories.play("browse")


async def test_a_market_is_created_traded_resolved_and_redeemed_by_mouse(stories: Stories) -> None:
    await stories.play("story")
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


async def test_h1_shares_that_a_wallet_refused_are_claimed_by_mouse(stories: Stories) -> None:
    await stories.play("claim")


async def test_a_halted_market_says_so_and_refuses_orders_until_it_resumes(
    stories: Stories,
) -> None:
    await stories.play("halt")


async def test_an_event_is_converted_disputed_and_redeemed_by_mouse(stories: Stories) -> None:
    await stories.play("event")  # the last: it moves the chain's clock
