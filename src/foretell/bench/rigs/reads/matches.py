"""The matches of a generated history: whose orders meet, and what each of them buys or sells.

The last wallet buys both tokens of the first 500 markets and keeps them. Of the next 1,000 markets it buys Yes and sells
it again, as a maker: it has closed positions, and no sale as a taker.
"""

from random import Random  # noqa: TID251 - the same plan gives the same rows
from typing import Final, NamedTuple

SIZE_UNITS: Final = 10_000_000
WHALE_MARKETS: Final = 500
WHALE_CLOSED: Final = 1_000
WHALE_SHARE: Final = 0.05


class MatchedParty(NamedTuple):
    """What a match does to the position of one of its wallets."""

    wallet: int
    is_yes: bool
    is_sold: bool
    units: int
    """The collateral that the wallet pays or gets."""


class GeneratedMatch(NamedTuple):
    """A match of one size, where the taker's order is for Yes; both orders buy unless one of them sells."""

    taker: int
    maker: int
    market: int
    cost_units: int
    is_taker_selling: bool = False
    is_maker_selling: bool = False

    @property
    def is_mint(self) -> bool:
        """Whether both buy, and collateral is split into their tokens."""
        return not (self.is_taker_selling or self.is_maker_selling)

    @property
    def making_units(self) -> int:
        """What the maker gives: the tokens that it sells, or collateral."""
        if self.is_maker_selling:
            return SIZE_UNITS
        return SIZE_UNITS - self.cost_units if self.is_mint else self.cost_units

    @property
    def taking_units(self) -> int:
        """What the maker gets: collateral, or the tokens that it buys."""
        return self.cost_units if self.is_maker_selling else SIZE_UNITS

    def parts(self) -> tuple[MatchedParty, MatchedParty]:
        """Return the part of the taker and that of the maker."""
        units = SIZE_UNITS - self.cost_units if self.is_mint else self.cost_units
        taken = MatchedParty(
            self.taker, is_yes=True, is_sold=self.is_taker_selling, units=self.cost_units
        )
        made = MatchedParty(
            self.maker, is_yes=not self.is_mint, is_sold=self.is_maker_selling, units=units
        )
        return taken, made


class Parties(NamedTuple):
    """Who trades, in a history of so many wallets and markets: hot markets more often."""

    wallets: int
    markets: int
    random: Random

    @property
    def whale(self) -> int:
        """The number of the wallet with 1,000 positions."""
        return self.wallets - 1

    @property
    def kept(self) -> int:
        """The number of the markets whose tokens it keeps."""
        return min(WHALE_MARKETS, self.markets)

    def choose(self, index: int) -> tuple[int, int, int]:
        """Return the taker, the maker and the market of a match."""
        whale, kept = self.whale, self.kept
        if index < 2 * kept:
            number = index % kept
            return (whale, number, number) if index < kept else (number, whale, number)
        closed, is_sale = divmod(index - 2 * kept, 2)
        if closed < min(WHALE_CLOSED, self.markets - kept):
            market, other = kept + closed, closed % whale
            return (other, whale, market) if is_sale else (whale, other, market)
        market = int(self.markets * self.random.random() ** 3)
        taker, maker = self.random.randrange(whale), self.random.randrange(whale)
        if self.random.random() < WHALE_SHARE:
            market, maker = self.random.randrange(kept), whale
        return taker, maker, market

    def is_closing(self, maker: int, market: int) -> bool:
        """Return whether the maker sells what it bought in this market: there it is asked no other time."""
        return maker == self.whale and market >= self.kept
