"""Wallets that make calls of a contract while it gives them tokens, and count those that succeed.

A wallet makes all of its calls whenever the contract itself moves tokens to it, so that they come in the
middle of a call of that contract. Each would succeed at another time; in the middle none does. Before a wallet
is opened it refuses all tokens, so that it can claim them later.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from tests.contracts.evm import Actor, Contract
from tests.contracts.fast_evm import FastEvm
from tests.contracts.market import Fill, World, match_args
from tests.contracts.neg_risk.rig import NegRisk
from tests.contracts.packed import records
from tests.contracts.scenarios.order_hashes import order_digest, signed_order
from tests.contracts.signing import BUY, ERC1271, OWN_V2, SELL, ZERO_WORD, Order
from tests.contracts.wallets import SIGNATURE_YES, answer, obeying, wallet

# A call of the wallet by itself opens it: the third storage slot is set, and receipts are accepted.
OPENING: Final = bytes.fromhex("333014" + "60025417" + "600255")
ANSWER_WHEN_OPEN: Final = bytes.fromhex("5f35" + "60025402" + "5f5260205ff3")

SUCCESSES_AT: Final = "0x0"
"""The storage slot with a bit for each call that has ever succeeded."""

ATTEMPTS_AT: Final = "0x1"
"""The storage slot with the number of times that all calls were tried."""


KEPT_UNITS: Final = 100
"""The tokens that an exchange keeps for a wallet."""

OTHER_FEE_BIPS: Final = 0
"""The fee of conversions of the event that the adapter's calls are about."""

OTHER_REQUEST: Final = 100
"""The number of that event's first request, which no other event has."""

OWN_SALT: Final = 2**200
"""The salt of the first order for the calls, which no order of a scenario has."""

OTHER_QUESTIONS: Final = 2
EMERGENCY_DELAY_S: Final = 3_600


class Call(NamedTuple):
    """A call of the contract, by its name and its calldata."""

    name: str
    calldata: bytes


class Reentering(NamedTuple):
    """A wallet, the contract that it calls, and its calls."""

    wallet: str
    contract: Contract
    calls: tuple[Call, ...]

    def successes(self, evm: FastEvm) -> list[str]:
        """Return the names of the calls that have succeeded."""
        bits = int(evm.rpc("eth_getStorageAt", self.wallet, SUCCESSES_AT, "latest"), 16)
        return [call.name for place, call in enumerate(self.calls) if bits >> place & 1]

    def open(self, evm: FastEvm) -> None:
        """Let the wallet accept tokens from now on."""
        evm.act(self.wallet, self.wallet, b"")

    def check_alone(self, evm: FastEvm) -> None:
        """Check that each call succeeds when it is made alone."""
        for call in self.calls:
            with evm.rolled_back():
                evm.act(self.wallet, self.contract.address, call.calldata)

    def attempts(self, evm: FastEvm) -> int:
        return int(evm.rpc("eth_getStorageAt", self.wallet, ATTEMPTS_AT, "latest"), 16)


def reentering_code(controller: str, contract: str, calls: Sequence[Call]) -> bytes:
    """Return the code of such a wallet, which signs everything."""
    calldata = b"".join(call.calldata for call in calls)
    # Whether the contract moves the tokens: the first argument of a receipt says who does.
    is_in_call = f"60043573{contract[2:]}14"
    code, left = "5f", len(calldata)  # no successes yet
    for place, call in enumerate(calls):
        size = f"61{len(call.calldata):04x}"
        copy = f"{size}61{left:04x}38035f39"
        # At other times it calls the address zero, which counts for nothing.
        target = f"{is_in_call}73{contract[2:]}02"
        code += f"{copy}5f5f{size}5f5f{target}5af1" + f"{is_in_call}16" + f"60{place:02x}1b17"
        left -= len(call.calldata)
    store = "5f54175f55" + f"{is_in_call}600154016001" + "55"
    taking = OPENING + bytes.fromhex(code + store) + ANSWER_WHEN_OPEN
    return wallet(answer(SIGNATURE_YES), obeying(controller, taking), calldata)


class Exchanged(NamedTuple):
    """An exchange, one of its tokens, and two accounts that have sets and collateral."""

    world: World
    exchange: Contract
    token: int
    seller: Actor
    buyer: Actor

    def order(self, who: str, side: int, units: int, salt: int, key: bytes | None) -> Order:
        """Return a signed order at the price of one, of an account or of a wallet without a key."""
        order = Order(who, who, self.token, units, units, side, salt, profile=OWN_V2)
        order = replace(order, signature_type=ERC1271) if key is None else order
        return signed_order(order, self.exchange, key)


def exchange_calls(about: Exchanged, who: str, controller: str) -> tuple[Call, ...]:
    """Return calls of an exchange that each succeed alone, as an operator and a maker."""
    exchange, seller, buyer = about.exchange, about.seller, about.buyer
    ask = about.order(seller.address, SELL, 1, OWN_SALT, seller.key)
    bid = about.order(buyer.address, BUY, 1, OWN_SALT, buyer.key)
    own = about.order(who, SELL, 1, OWN_SALT, None)
    calls: dict[str, tuple[object, ...]] = {
        "incrementNonce": (),
        "setOwnerSigning": (False,),
        "cancelBefore": (1,),
        "sweep": (about.world.collateral.address,),
        "claimTokens": (about.token, controller),
        "cancelOrder": (own.fields,),
        "invalidatePreapprovedOrder": (order_digest(own, exchange),),
        "matchPacked": (records(bid, [ask], Fill(1, (1,))),),
        "matchOrders": match_args(bid, [ask], Fill(1, (1,))),
    }
    return tuple(Call(name, exchange.calldata(name, *args)) for name, args in calls.items())


def keep_tokens(about: Exchanged, who: str) -> None:
    """Make a wallet an operator that has approved its order, and have tokens kept that it refused."""
    world, exchange, seller = about.world, about.exchange, about.seller
    exchange.send("addOperator", who, sender=world.admin)
    own = about.order(who, SELL, 1, OWN_SALT, None)
    exchange.send("preapproveOrder", own.fields, sender=who)
    bid = about.order(who, BUY, KEPT_UNITS, OWN_SALT + 1, None)
    ask = about.order(seller.address, SELL, KEPT_UNITS, OWN_SALT + 1, seller.key)
    fill = Fill(KEPT_UNITS, (KEPT_UNITS,))
    exchange.send("matchOrders", *match_args(ask, [bid], fill), sender=world.operator)
    assert exchange.call("owedTokens", who, about.token) == KEPT_UNITS


def adapter_calls(event: NegRisk, market: bytes) -> tuple[Call, ...]:
    """Return calls of the adapter that each succeed alone, about two events."""
    other, first = event.market(OTHER_FEE_BIPS), event.condition(0, market)
    collateral = event.world.collateral.address
    long = collateral, ZERO_WORD, first, [1, 2], 1
    calls: dict[str, tuple[object, ...]] = {
        "convertPositions": (market, 1, 1),
        "redeemPositions": (event.condition(0, other), [1, 1]),
        "mergePositions(bytes32,uint256)": (first, 1),
        "splitPosition(bytes32,uint256)": (first, 1),
        "mergePositions(address,bytes32,bytes32,uint256[],uint256)": long,
        "splitPosition(address,bytes32,bytes32,uint256[],uint256)": long,
        "releaseUnclaimed": (other, OTHER_QUESTIONS),
        "sweep": (collateral,),
    }
    return tuple(Call(name, event.adapter.calldata(name, *args)) for name, args in calls.items())


def prepare_other_event(event: NegRisk, who: str) -> None:
    """Open an event that a wallet converts in and that ends with all its questions as No."""
    event.open_market(OTHER_FEE_BIPS)
    market, admin = event.market(OTHER_FEE_BIPS), event.resolution.admin
    for index in range(OTHER_QUESTIONS):
        event.add_question(OTHER_REQUEST + index, market)
        event.split(who, index, KEPT_UNITS, market)
    event.seal(market)
    event.adapter.send("convertPositions", market, 1, 1, sender=who)
    questions = [event.question(index, market) for index in range(OTHER_QUESTIONS)]
    for question in questions:
        event.operator.send("flagQuestion", question, sender=admin)
    event.world.evm.rpc("evm_increaseTime", EMERGENCY_DELAY_S)
    for question in questions:
        event.operator.send("emergencyResolveQuestion", question, False, sender=admin)  # noqa: FBT003
