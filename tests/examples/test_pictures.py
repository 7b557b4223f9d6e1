"""The documentation in a browser, and the picture of the README: taken from today's app, by trades of today.

`make screenshot` runs this with pauses between the trades, so that the chart has lines, and copies the picture.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageStat
from tests.e2e.browser import CHROMIUM, PICTURES, play
from tests.examples.conftest import ROOT, WITHIN_S, Play
from tests.rigs.installation import Running

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.exchange.order import OrderType
from foretell.sandbox.ready import read_ready
from foretell.sdk.blocking import BlockingForetell, connect
from foretell.sdk.client import KeySigner, OrderDraft, Side, Urls
from foretell.web.build_files import INDEX
from foretell.web.site.routes import SITE

pytestmark = [
    pytest.mark.xdist_group("examples"),
    pytest.mark.skipif(
        CHROMIUM is None, reason="chromium is not installed: apt-get install chromium"
    ),
]

SLUG = "who-wins-the-regatta-of-nesodden"
PAYLOAD = {
    "title": "Who wins the regatta of Nesodden?",
    "slug": SLUG,
    "endDateIso": "2035-06-01T12:00:00Z",
    "mainCategorySlug": "sports",
    "categories": ["Sports", "Sailing", "Norway", "Sandbox", "Examples"],
    "resolutionType": "dro_moov2",
    "resolutionRules": "This event resolves to the boat that the race committee of the regatta declares the winner.",
    "marketMode": "multi_unique",
}
PRICES_CENTS = {
    "Astrid": (38, 41, 45, 40, 44, 47, 42, 43),
    "Bolette": (30, 27, 25, 28, 24, 20, 23, 21),
    "Cecilie": (12, 14, 11, 15, 13, 16, 14, 15),
    "Dagny": (9, 8, 10, 7, 9, 6, 8, 7),
}
"""The midpoints of each boat, one round after the other; trades are at the midpoint."""
LEVELS = 5
SIZES = (54, 24, 28, 47, 71)
TRADED = ("8", "12", "10", "6", "14", "9", "11", "10")
PAUSE_S = float(os.environ.get("FORETELL_TEST_PICTURE_PAUSE_S", "0"))
"""Between two rounds: a chart has a point a minute."""
README_PICTURE = ROOT / "docs" / "web.png"
TAKEN = (1240, 1080)
SIZE = (930, 810)
"""Of the picture as it was taken, and of the smaller one in the README, in pixels."""
CHART = (76, 180, 610, 375)
"""The part of the picture that depends on the time that the trades took."""
BLOCK_PX = 10
DIFFERENCE_MAX = 2.0
"""The mean difference of the blocks' brightness, of 255, up to which a picture is of the same app."""


@pytest.fixture
def trader(example_sandbox: Running, folder: Path) -> Iterator[Callable[[int], BlockingForetell]]:
    """Give clients of the sandbox's traders, by number."""
    del folder
    urls = Urls.from_ready(example_sandbox.data, {})
    accounts = read_ready(example_sandbox.data).accounts
    keys = [each.key for each in accounts if each.role == AccountRole.TRADER]
    with ExitStack() as stack:
        yield lambda number: stack.enter_context(connect(urls, KeySigner(keys[number - 1])))


def quotes(token_yes: str, token_no: str, cents: int) -> list[OrderDraft]:
    """Return bids for both tokens around a midpoint, which shows offers of Yes too."""
    drafts = []
    for level in range(LEVELS):
        bid, size = cents - 1 - level, str(SIZES[level])
        for token, price in ((token_yes, bid), (token_no, 100 - cents - 1 - level)):
            if price > 0:
                drafts.append(
                    OrderDraft(token_id=token, side=Side.BUY, price=f"0.{price:02d}", size=size)
                )
    return drafts


def traded_round(
    maker: BlockingForetell, taker: BlockingForetell, tokens: tuple[str, str], cents: int, size: str
) -> None:
    """Trade at a midpoint: two bids for the two tokens make a set."""
    yes, no = tokens
    assert maker.trader.buy(yes, f"0.{cents:02d}", size).status == "live"
    taken = taker.trader.place(
        OrderDraft(
            token_id=no,
            side=Side.BUY,
            price=f"0.{100 - cents:02d}",
            size=size,
            order_type=OrderType.GTC,
        )
    )
    assert taken.status == "matched"


@pytest.mark.skipif(
    (SITE / INDEX).exists(), reason="the site of make docs is served in place of the pages"
)
def test_the_documentation_is_found_and_read_in_a_browser(example_sandbox: Running) -> None:
    play(example_sandbox, "documentation")


def test_the_picture_of_the_readme_is_one_of_todays_app(
    example_sandbox: Running,
    command: Play,
    trader: Callable[[int], BlockingForetell],
    folder: Path,
) -> None:
    options = [
        {
            "id": name.lower(),
            "title": name,
            "shortName": name,
            "slug": name.lower(),
            "question": f"Does {name} win the regatta?",
        }
        for name in PRICES_CENTS
    ]
    (folder / "regatta.json").write_text(json.dumps({**PAYLOAD, "options": options}))
    made = json.loads(command("market", "create", "regatta.json", "--json"))
    tokens = {each["market"]: (each["first token"], each["second token"]) for each in made}
    maker, taker = trader(7), trader(8)
    for number, size in enumerate(TRADED):
        maker.trader.cancel_all()
        for name, path in PRICES_CENTS.items():
            traded_round(maker, taker, tokens[name.lower()], path[number], size)
            drafts = quotes(*tokens[name.lower()], path[number])
            assert {each.status for each in maker.trader.place_all(drafts)} == {"live"}
        if number < len(TRADED) - 1:
            time.sleep(PAUSE_S)
    settled_by_s = time.monotonic() + WITHIN_S
    while any(each.status != "CONFIRMED" for each in taker.trader.trades()):
        assert time.monotonic() < settled_by_s
        time.sleep(0.2)

    play(example_sandbox, "screenshot")

    with Image.open(PICTURES / "readme.png") as today, Image.open(README_PICTURE) as shown:
        assert (today.size, shown.size) == (TAKEN, SIZE)
        difference = mean_difference(today.resize(SIZE, Image.Resampling.LANCZOS), shown)
    assert difference <= DIFFERENCE_MAX, f"{difference:.1f}: run make screenshot"


def mean_difference(a: Image.Image, b: Image.Image) -> float:
    """Return the mean difference of two pictures' blocks, without the chart, of 255."""
    small = []
    for picture in (a, b):
        grey = picture.convert("L")
        grey.paste(0, CHART)
        small.append(grey.reduce(BLOCK_PX))
    return float(ImageStat.Stat(ImageChops.difference(*small)).mean[0])
