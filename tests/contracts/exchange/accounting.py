"""The expected result of a match by slow, obvious rules, and random matches."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from hypothesis import strategies as st
from tests.contracts.market import Fill, World
from tests.contracts.signing import BUY, OWN_V1, OWN_V2, SELL, Order

AMOUNT_MAX = 10**9
BPS = 10_000
V2_FEE_RATE_BPS = 250
MAKERS_MAX = 5
ACTORS = 4
COLLATERAL = 0


@dataclass(frozen=True)
class Resting:
    """A maker order that crosses the taker's, and its fill."""

    actor: int
    is_direct: bool
    cost: int
    size: int
    making: int
    fee_share: int
    fee_rate_bps: int
    profile: int


@dataclass(frozen=True)
class Scene:
    """A taker order at a price, and the makers that it crosses."""

    side: int
    cost: int
    size: int
    fee_share: int
    fee_rate_bps: int
    profile: int
    makers: tuple[Resting, ...]


fee_shares = st.integers(0, 100)
fee_rates = st.sampled_from((0, 1, 77, 1_000))
profiles = st.sampled_from((OWN_V1, OWN_V2))


@st.composite
def scenes(draw: st.DrawFn, side: int, amount_max: int = AMOUNT_MAX) -> Scene:
    size = draw(st.integers(2, amount_max))
    cost = draw(st.integers(1, size - 1))
    makers = draw(st.lists(resting(side, cost, size, amount_max), min_size=1, max_size=MAKERS_MAX))
    return Scene(side, cost, size, draw(fee_shares), draw(fee_rates), draw(profiles), tuple(makers))


@st.composite
def resting(draw: st.DrawFn, side: int, cost: int, size: int, amount_max: int) -> Resting:
    is_direct = draw(st.booleans())
    # The limit at which the maker just crosses: the taker's price, or one minus it.
    limit = cost if is_direct else size - cost
    own_size = draw(st.integers(1, amount_max))
    maker_buys = (side == SELL) if is_direct else (side == BUY)
    if maker_buys:
        own_cost = draw(st.integers(max(1, -(-own_size * limit // size)), own_size))
    else:
        own_size = max(own_size, -(-size // limit))
        own_cost = draw(st.integers(1, own_size * limit // size))
    given = own_cost if maker_buys else own_size
    return Resting(
        actor=draw(st.integers(0, ACTORS - 1)),
        is_direct=is_direct,
        cost=own_cost,
        size=own_size,
        making=draw(st.one_of(st.just(given), st.integers(1, given))),
        fee_share=draw(fee_shares),
        fee_rate_bps=draw(fee_rates),
        profile=draw(profiles),
    )


def fee_of(profile: int, rate_bps: int, share: int, side: int, given: int, received: int) -> int:
    """Return a share, in per cent, of the highest fee."""
    if profile == OWN_V2:
        most = received * V2_FEE_RATE_BPS // BPS
    elif side == SELL:
        most = rate_bps * min(received, given - received) // BPS
    elif given == 0:
        most = rate_bps * received // BPS
    else:
        most = rate_bps * min(given, received - given) * received // (given * BPS)
    return most * share // 100


class Ledger:
    """The change of every wallet's balances, by the rules of each kind of match."""

    def __init__(self, world: World, scene: Scene) -> None:
        self.world = world
        self.scene = scene
        self.gains: Counter[tuple[str, int]] = Counter()
        self.paid = 0
        self.received = 0
        self.sets = 0

    def move(self, asset: int, sender: str, receiver: str, amount: int) -> None:
        self.gains[sender, asset] -= amount
        self.gains[receiver, asset] += amount

    def fill(self, maker: Resting, fee: int) -> None:
        world, scene = self.world, self.scene
        wallet, taker = world.makers[maker.actor].address, world.taker.address
        given, received = assets(world, scene, maker)
        taking = taking_of(scene, maker)
        counterparty = taker if maker.is_direct else world.ctf.address
        self.move(given, wallet, counterparty, maker.making)
        self.move(received, counterparty, wallet, taking)
        self.move(received, wallet, world.fee_receiver, fee)
        if maker.is_direct:
            self.paid += taking
            self.received += maker.making
            return
        sets = max(taking, maker.making)
        rest = sets - min(taking, maker.making)
        cost, tokens = (rest, sets) if scene.side == BUY else (sets, rest)
        taker_gives, taker_gets = (COLLATERAL, world.yes)[:: 1 if scene.side == BUY else -1]
        self.move(taker_gives, taker, world.ctf.address, cost)
        self.move(taker_gets, world.ctf.address, taker, tokens)
        self.paid += cost
        self.received += tokens
        self.sets += sets if scene.side == BUY else -sets


def maker_side(scene: Scene, maker: Resting) -> int:
    return 1 - scene.side if maker.is_direct else scene.side


def assets(world: World, scene: Scene, maker: Resting) -> tuple[int, int]:
    """Return the amounts that the maker gives and receives."""
    token = world.yes if maker.is_direct else world.no
    pair = (COLLATERAL, token)
    return pair if maker_side(scene, maker) == BUY else pair[::-1]


def amounts(side: int, cost: int, size: int) -> tuple[int, int]:
    return (cost, size) if side == BUY else (size, cost)


def taking_of(scene: Scene, maker: Resting) -> int:
    """Return the amount that the maker receives, rounded up."""
    given, received = amounts(maker_side(scene, maker), maker.cost, maker.size)
    return -(-maker.making * received // given)


@dataclass(frozen=True)
class Account:
    """A scene with its expected result."""

    world: World
    scene: Scene

    @cached_property
    def maker_fees(self) -> tuple[int, ...]:
        return tuple(
            fee_of(
                maker.profile,
                maker.fee_rate_bps,
                maker.fee_share,
                maker_side(self.scene, maker),
                maker.making,
                taking_of(self.scene, maker),
            )
            for maker in self.scene.makers
        )

    @cached_property
    def ledger(self) -> Ledger:
        ledger = Ledger(self.world, self.scene)
        for maker, fee in zip(self.scene.makers, self.maker_fees, strict=True):
            ledger.fill(maker, fee)
        return ledger

    @cached_property
    def taker_fee(self) -> int:
        scene, ledger = self.scene, self.ledger
        return fee_of(
            scene.profile,
            scene.fee_rate_bps,
            scene.fee_share,
            scene.side,
            ledger.paid,
            ledger.received,
        )

    @property
    def fill(self) -> Fill:
        makings = tuple(maker.making for maker in self.scene.makers)
        return Fill(self.taker_fill, makings, self.taker_fee, self.maker_fees)

    @property
    def taker_fill(self) -> int:
        return max(1, self.ledger.paid)

    @property
    def gains(self) -> Counter[tuple[str, int]]:
        """The change of each wallet's balances, with the taker's fee."""
        asset = self.world.yes if self.scene.side == BUY else COLLATERAL
        gains = self.ledger.gains.copy()
        gains[self.world.taker.address, asset] -= self.taker_fee
        gains[self.world.fee_receiver, asset] += self.taker_fee
        return gains

    @property
    def refusal(self) -> str | None:
        """The expected refusal: rounding may exceed the taker's limit."""
        given, received = amounts(self.scene.side, self.scene.cost, self.scene.size)
        if self.ledger.received * given < self.ledger.paid * received:
            return "WorseThanLimit"
        if self.ledger.received < self.taker_fill * received // given:
            return "TooLittleTokensReceived"
        return None

    @cached_property
    def taker(self) -> Order:
        """The taker's order, at the scene's price and large enough."""
        scene = self.scene
        given, received = amounts(scene.side, scene.cost, scene.size)
        scale = -(-self.taker_fill // given)
        return self.world.order(
            self.world.taker,
            scene.side,
            self.world.yes,
            (given * scale, received * scale),
            profile=scene.profile,
            fee_rate_bps=signed_rate(scene),
        )

    @cached_property
    def makers(self) -> list[Order]:
        return [
            self.world.order(
                self.world.makers[maker.actor],
                maker_side(self.scene, maker),
                self.world.yes if maker.is_direct else self.world.no,
                amounts(maker_side(self.scene, maker), maker.cost, maker.size),
                profile=maker.profile,
                fee_rate_bps=signed_rate(maker),
                salt=salt,
            )
            for salt, maker in enumerate(self.scene.makers)
        ]


def signed_rate(order: Scene | Resting) -> int:
    """Return the fee rate, or zero for a struct without one."""
    return order.fee_rate_bps if order.profile == OWN_V1 else 0
