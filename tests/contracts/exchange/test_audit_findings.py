"""Audit findings in similar exchanges, each with a test that it does not apply here."""

from dataclasses import replace

import pytest
from tests.contracts.evm import Actor, reverts
from tests.contracts.market import ALLOWANCE_MAX, APPROVED, Fill, World
from tests.contracts.packed import match_packed
from tests.contracts.signing import BUY, OWN_V2, SAFE, SELL, UNIT, V1_FIELDS, V2_FIELDS, ZERO, Order

from foretell.domain.values.hexadecimal import keccak256

# The type hashes that third-party clients sign with.
V1_TYPE_HASH = "a852566c4e14d00869b6db0220888a9090a13eccdaea03713ff0a3d27bf9767c"
V2_TYPE_HASH = "bb86318a2138f5fa8ae32fbe8e659f8fcf13cc6ae4014a707893055433818589"


@pytest.fixture
def victim(world: World) -> Actor:
    return world.makers[0]


@pytest.fixture
def attacker(world: World) -> Actor:
    return world.makers[1]


def match_bid(world: World, bid: Order) -> None:
    """Match a sell order of the taker with a bid for one token at one half."""
    ask = world.sell(world.taker, world.yes, UNIT, 50)
    world.match(ask, [bid], Fill(UNIT, (UNIT // 2,)))


@pytest.mark.case("C-04")
def test_chainsecurity_6_1_an_eoa_order_with_another_as_maker_is_refused(
    world: World, victim: Actor, attacker: Actor
) -> None:
    bid = world.buy(attacker, world.yes, UNIT, 50, maker=victim.address)
    with reverts("InvalidSigner"):
        match_bid(world, bid)
    with reverts("InvalidSignature"):
        match_bid(world, replace(bid, signer=victim.address))


@pytest.mark.parametrize(
    ("fields", "type_hash", "profile"),
    [(V1_FIELDS, V1_TYPE_HASH, 0), (V2_FIELDS, V2_TYPE_HASH, OWN_V2)],
)
def test_chainsecurity_6_2_the_type_hash_is_that_of_the_signed_struct(
    world: World, fields: tuple[tuple[str, str], ...], type_hash: str, profile: int
) -> None:
    declared = ",".join(f"{kind} {name}" for name, kind in fields)
    assert keccak256(f"Order({declared})".encode()).hex() == type_hash
    order = world.buy(world.taker, world.yes, UNIT, 50, profile=profile)
    assert world.exchange.call("hashOrder", order.fields) == world.hash(order)


def test_chainsecurity_6_3_the_fee_rate_is_signed(world: World, victim: Actor) -> None:
    bid = world.buy(victim, world.yes, UNIT, 50, fee_rate_bps=1)
    with reverts("InvalidSignature"):
        match_bid(world, replace(bid, fee_rate_bps=1_000))


@pytest.mark.parametrize("side", [BUY, SELL])
def test_chainsecurity_6_4_a_fee_needs_no_approval_of_its_own(world: World, side: int) -> None:
    """A buyer pays its fee in tokens without an approval for them, a seller in collateral."""
    newcomer = world.evm.actor("newcomer")
    place = {BUY: world.buy, SELL: world.sell}
    world.collateral.send("mint", newcomer.address, UNIT, sender=world.minter)
    world.ctf.send(
        "safeTransferFrom",
        *(world.makers[0].address, newcomer.address, world.yes, UNIT, b""),
        sender=world.makers[0].address,
    )
    approvals = {
        BUY: lambda: world.collateral.send(
            "approve", world.exchange.address, ALLOWANCE_MAX, sender=newcomer.address
        ),
        SELL: lambda: world.ctf.send(
            "setApprovalForAll", world.exchange.address, APPROVED, sender=newcomer.address
        ),
    }
    approvals[side]()
    taker = place[side](newcomer, world.yes, UNIT, 50, fee_rate_bps=100)
    maker = place[1 - side](world.makers[1], world.yes, UNIT, 50, fee_rate_bps=100)
    fee = {BUY: UNIT // 100, SELL: UNIT // 200}
    world.match(
        taker,
        [maker],
        Fill(taker.maker_amount, (maker.maker_amount,), fee[side], (fee[1 - side],)),
    )
    assert world.holdings(world.fee_receiver) == (UNIT // 200, UNIT // 100, 0)


@pytest.mark.case("B-05")
@pytest.mark.parametrize("maker_side", [BUY, SELL])
@pytest.mark.parametrize("taker_side", [BUY, SELL])
def test_chainsecurity_6_5_impossible_combinations_of_side_and_asset_do_not_match(
    world: World, victim: Actor, taker_side: int, maker_side: int
) -> None:
    nonsense = {True: world.yes, False: world.no}[taker_side == maker_side]
    taker = world.order(world.taker, taker_side, world.yes, (UNIT, UNIT))
    maker = world.order(victim, maker_side, nonsense, (UNIT, UNIT))
    with reverts("MismatchedTokenIds"):
        world.match(taker, [maker], Fill(UNIT, (UNIT,)))


@pytest.mark.case("C-04")
@pytest.mark.parametrize("signature_type", [0, SAFE])
def test_chainsecurity_6_6_the_zero_address_is_never_a_signer(
    world: World, signature_type: int
) -> None:
    """A signature that recovers to the zero address is not valid for it or its Safe."""
    wallets = {0: ZERO, SAFE: world.exchange.call("safeAddress", ZERO)}
    bid = Order(
        maker=wallets[signature_type],
        signer=ZERO,
        token_id=world.yes,
        maker_amount=UNIT // 2,
        taker_amount=UNIT,
        side=BUY,
        signature_type=signature_type,
        signature=bytes(64) + b"\x1b",
    )
    with reverts("InvalidSignature"):
        match_bid(world, bid)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    with reverts("InvalidSignature"):
        match_packed(world, bid, [ask], Fill(UNIT // 2, (UNIT,)))


@pytest.mark.case("C-02")
def test_chainsecurity_6_10_no_order_is_valid_on_a_fork_with_another_chain_id(
    world: World, victim: Actor
) -> None:
    bid = world.buy(victim, world.yes, UNIT, 50)
    before = world.exchange.call("domainSeparator(uint256)", 0)
    world.evm.rpc("anvil_setChainId", 1)
    try:
        with reverts("ChainChanged"):
            world.exchange.call("validateOrder", bid.fields)
        assert world.exchange.call("domainSeparator(uint256)", 0) == before
    finally:
        world.evm.rpc("anvil_setChainId", 80002)


def test_chainsecurity_6_13_the_remaining_amount_depends_on_the_nonce(
    world: World, victim: Actor
) -> None:
    bid = world.buy(victim, world.yes, UNIT, 50)
    world.exchange.send("incrementNonce", sender=victim.address)
    assert world.exchange.call("remaining", bid.fields) == 0


@pytest.mark.case("B-04")
@pytest.mark.parametrize("amounts", [(UNIT, 0), (0, UNIT), (0, 0)])
@pytest.mark.parametrize("side", [BUY, SELL])
def test_chainsecurity_6_16_an_order_with_a_zero_amount_crosses_no_other(
    world: World, victim: Actor, side: int, amounts: tuple[int, int]
) -> None:
    void = world.order(victim, side, world.yes, amounts)
    taker = world.order(world.taker, 1 - side, world.yes, (UNIT, UNIT))
    with reverts("ZeroAmount"):
        world.match(taker, [void], Fill(UNIT, (1,)))
    with reverts("ZeroAmount"):
        world.match(void, [taker], Fill(1, (UNIT,)))
