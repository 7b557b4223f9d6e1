"""Reads of the data API and the discovery API: events, markets, and what wallets hold and did."""

from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec

from foretell.domain.errors.command import MarketUnknown
from foretell.domain.values.hexadecimal import Address, Bytes32, checksum_address, parse_bytes32
from foretell.sdk.http import HttpClient
from foretell.sdk.wallet_calls import MarketCondition

POSITIONS_PER_PAGE: Final = 500
EVENTS_PER_PAGE: Final = 100

Row = dict[str, Any]


class ListedMarket(msgspec.Struct, frozen=True):
    """A market as the discovery API lists it, with its own names."""

    condition_id: Bytes32
    slug: str
    question: str
    outcomes: tuple[str, str]
    token_ids: tuple[str, str]
    is_neg_risk: bool
    is_closed: bool
    row: Row

    @property
    def condition(self) -> MarketCondition:
        """The market as the contracts know it."""
        return MarketCondition(self.condition_id, self.is_neg_risk)

    def token(self, outcome: str) -> str:
        """Return the token of an outcome, named in any case."""
        names = [each.casefold() for each in self.outcomes]
        if outcome.casefold() not in names:
            raise MarketUnknown(f"{self.slug} has no outcome {outcome}: {', '.join(self.outcomes)}")
        return self.token_ids[names.index(outcome.casefold())]


def listed_market(row: Row) -> ListedMarket:
    """Return a market of the discovery API's row."""
    return ListedMarket(
        condition_id=parse_bytes32(row["conditionId"]),
        slug=row["slug"],
        question=row["question"],
        outcomes=msgspec.json.decode(row["outcomes"], type=tuple[str, str]),
        token_ids=msgspec.json.decode(row["clobTokenIds"], type=tuple[str, str]),
        is_neg_risk=bool(row.get("negRisk")),
        is_closed=bool(row["closed"]),
        row=row,
    )


class Discovery:
    """Events and markets."""

    def __init__(self, http: HttpClient) -> None:
        self.http = http

    async def market(self, name: str) -> ListedMarket:
        """Return a market by its slug or its condition id, or refuse an unknown one."""
        key = "condition_ids" if name.startswith("0x") else "slug"
        rows = await self.http.get("/markets", None, **{key: name})
        if not rows:
            raise MarketUnknown(f"no market has the {key.replace('_ids', ' id')} {name}")
        return listed_market(rows[0])

    async def markets(self, /, **filters: str | int) -> list[ListedMarket]:
        """Return one page of markets, the newest first; filters as in `GET /markets`."""
        return [listed_market(row) for row in await self.http.get("/markets", None, **filters)]

    async def event(self, slug: str) -> Row:
        """Return an event with its markets."""
        return dict(await self.http.get(f"/events/slug/{slug}"))

    async def events(self, /, **filters: str | int) -> AsyncGenerator[Row]:
        """Yield all events of a filter, page by page; none comes twice."""
        query: dict[str, str | int] = {"limit": EVENTS_PER_PAGE, **filters}
        while True:
            page = await self.http.get("/events/keyset", None, **query)
            for event in page["events"]:
                yield event
            if "next_cursor" not in page:
                return
            query["after_cursor"] = page["next_cursor"]

    async def search(self, words: str) -> list[Row]:
        """Return the events that match words."""
        return list((await self.http.get("/public-search", q=words))["events"])


class Portfolio:
    """A wallet's positions and history."""

    def __init__(self, http: HttpClient, wallet: Address) -> None:
        self.http = http
        self._user = checksum_address(wallet)

    async def positions(self, /, **filters: str | int) -> list[Row]:
        """Return all positions, of any size; filters as in `GET /positions`."""
        rows: list[Row] = []
        while True:
            page = await self._get(
                "/positions",
                sizeThreshold=0,
                limit=POSITIONS_PER_PAGE,
                offset=len(rows),
                **filters,
            )
            rows += page
            if len(page) < POSITIONS_PER_PAGE:
                return rows

    async def closed_positions(self, /, **filters: str | int) -> list[Row]:
        """Return positions with nothing left."""
        return list(await self._get("/closed-positions", **filters))

    async def owed(self) -> list[Row]:
        """Return the tokens that exchanges keep for the wallet because it refused them."""
        rows: list[Row] = []
        after = ""
        while True:
            page = await self._get("/owed", **({"after": after} if after else {}))
            rows += page["owed"]
            after = page["next"]
            if not after:
                return rows

    async def activity(self, /, **filters: str | int) -> list[Row]:
        """Return trades, splits, merges, conversions and redemptions, newest first."""
        return list(await self._get("/activity", **filters))

    async def value(self) -> str:
        """Return the value of all open positions, as decimal text."""
        return str((await self._get("/value"))[0]["value"])

    async def _get(self, path: str, **query: str | int) -> Any:
        return await self.http.get(path, None, user=self._user, **query)
