"""Proxy wallets on a chain: their addresses, the calls of their owners, and their orders."""

from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
from tests.contracts.evm import Actor, Contract, own_artifact, reverts
from tests.contracts.market import Fill, World, deploy_exchange
from tests.contracts.signing import CHAIN_ID, OWN_V1, OWN_V2, PROXY, UNIT, ZERO, Order

from foretell.domain.contracts.proxy_wallet import (
    CALLS_PER_PROXY_MAX,
    PROXY_CALL_BYTES_MAX,
    PROXY_CALLDATA_BYTES_MAX,
    PROXY_CALLS,
    RELAY_CALL,
    RelayedCall,
    encode_proxy_calls,
    proxy_init_code_hash,
    proxy_wallet_address,
)
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.values.eip712 import CURVE_ORDER, address_of_key, sign_digest
from foretell.domain.values.hexadecimal import Address, parse_address

HUB: Final = Address("0xd216153c06e857cd7f72665e0af1d7d82172f494")
IMPLEMENTATION: Final = Address("0x44e999d5c2f66ef0861317f9a4805ac2e90aeb4f")
FACTORY: Final = Address("0xab45c5a4b0c941a2f231c04c3f49182e1a254052")
CLIENTS_INIT_CODE_HASH: Final = "d21df8dc65880a8606f09fe0ce3df9b8869287ab0b058be05aa9e8af6330a00b"
RELAY: Final = Address("0x" + "5e" * 20)
GAS: Final = 1_000_000
NATIVE_WEI: Final = 10


@dataclass(frozen=True)
class Proxies:
    """The hub and the factory at the addresses that clients contain, and an owner's wallet there."""

    world: World
    hub: Contract
    factory: Contract
    owner: Actor

    @property
    def wallet(self) -> Address:
        return proxy_wallet_address(parse_address(self.owner.address), FACTORY, IMPLEMENTATION)

    def relayed(self, *calls: InnerCall, nonce: int = 0, gas: int = GAS) -> RelayedCall:
        owner = parse_address(self.owner.address)
        return RelayedCall(owner, FACTORY, encode_proxy_calls(calls), gas, nonce, HUB, RELAY)

    def relay(self, call: RelayedCall, *, key: bytes = b"", sender: str = RELAY) -> int:
        """Send a call that is signed by the owner, or by a key; return the gas used."""
        signature = sign_digest(call.digest(), key or self.owner.key)
        return self.world.evm.transact(sender, HUB, call.encode(signature)).gas_used

    def approving(self, units: int = 5) -> InnerCall:
        collateral = self.world.collateral
        calldata = collateral.calldata("approve", self.world.exchange.address, units)
        return InnerCall(parse_address(collateral.address), calldata)

    def allowance(self, wallet: str = "") -> int:
        owner = wallet or self.wallet
        units = self.world.collateral.call("allowance", owner, self.world.exchange.address)
        assert isinstance(units, int)
        return units


@pytest.fixture
def proxies(world: World) -> Proxies:
    evm = world.evm
    hub = evm.install(HUB, own_artifact("RelayHub"), CHAIN_ID)
    evm.install(IMPLEMENTATION, own_artifact("ProxyWallet"))
    factory = evm.install(FACTORY, own_artifact("ProxyWalletFactory"), IMPLEMENTATION, HUB)
    return Proxies(world, hub, factory, evm.actor("owner of a proxy wallet"))


def test_a_wallet_is_where_clients_derive_it(proxies: Proxies) -> None:
    assert proxy_init_code_hash(FACTORY, IMPLEMENTATION).hex() == CLIENTS_INIT_CODE_HASH
    assert proxies.factory.call("initCodeHash").hex() == CLIENTS_INIT_CODE_HASH
    assert proxies.factory.call("proxyWalletAddress", proxies.owner.address) == proxies.wallet
    assert proxies.factory.call("getImplementation") == IMPLEMENTATION
    assert proxies.factory.call("relayHub") == HUB
    calldata = encode_proxy_calls((proxies.approving(),))
    receipt = proxies.world.evm.transact(proxies.owner.address, FACTORY, calldata)
    assert proxies.factory.logs(receipt, "WalletDeployed(address,address)") == [
        {"wallet": proxies.wallet, "owner": proxies.owner.address}
    ]
    wallet = proxies.world.evm.at(proxies.wallet, own_artifact("ProxyWallet").abi)
    assert wallet.call("factory") == FACTORY
    assert [wallet.call("supportsInterface", bytes.fromhex(each)) for each in YES_AND_NO] == [
        True,
        True,
        False,
    ]


YES_AND_NO: Final = ("01ffc9a7", "4e2312e0", "ffffffff")


def test_an_owner_calls_its_wallet_through_the_factory_as_often_as_it_likes(
    proxies: Proxies,
) -> None:
    for units in (5, 6):
        calldata = encode_proxy_calls((proxies.approving(1), proxies.approving(units)))
        proxies.world.evm.transact(proxies.owner.address, FACTORY, calldata)
        assert proxies.allowance() == units


def test_the_named_relay_sends_what_the_owner_signed_once(proxies: Proxies) -> None:
    call = proxies.relayed(proxies.approving(5))
    proxies.relay(call)
    assert (proxies.allowance(), proxies.hub.call("getNonce", proxies.owner.address)) == (5, 1)
    with reverts("InvalidNonce"):
        proxies.relay(call)
    proxies.relay(proxies.relayed(proxies.approving(7), nonce=1))
    assert proxies.allowance() == 7


def test_the_hub_announces_what_was_signed(proxies: Proxies) -> None:
    call = proxies.relayed(proxies.approving())
    signature = sign_digest(call.digest(), proxies.owner.key)
    receipt = proxies.world.evm.transact(RELAY, HUB, call.encode(signature))
    (log,) = proxies.hub.logs(receipt, "TransactionRelayed(address,address,bytes32)")
    assert (log["owner"], log["recipient"]) == (proxies.owner.address, FACTORY)


def test_another_signer_or_sender_moves_nothing(proxies: Proxies) -> None:
    call = proxies.relayed(proxies.approving())
    with reverts("InvalidSignature"):
        proxies.relay(call, key=proxies.world.taker.key)
    with reverts("InvalidSignature"):
        proxies.relay(call, sender=proxies.world.operator)
    assert proxies.allowance() == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"factory": RELAY},
        {"calldata": b"\1"},
        {"gas_limit": GAS - 1},
        {"owner": address_of_key(bytes([7]) * 32)},
    ],
)
def test_every_part_is_signed(proxies: Proxies, changed: dict[str, Any]) -> None:
    call = proxies.relayed(proxies.approving())
    signature = sign_digest(call.digest(), proxies.owner.key)
    with reverts("InvalidSignature"):
        proxies.world.evm.transact(RELAY, HUB, call._replace(**changed).encode(signature))


def test_a_signature_has_one_spelling(proxies: Proxies) -> None:
    call = proxies.relayed(proxies.approving())
    signature = sign_digest(call.digest(), proxies.owner.key)
    high_s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
    twin = signature[:32] + high_s.to_bytes(32, "big") + bytes([55 - signature[64]])
    low_v = signature[:64] + bytes([signature[64] - 27])
    for wrong in (twin, low_v, signature[:64], b"", bytes(65)):
        with reverts("InvalidSignature"):
            proxies.world.evm.transact(RELAY, HUB, call.encode(wrong))


def test_nobody_is_no_owner(proxies: Proxies) -> None:
    call = proxies.relayed(proxies.approving())._replace(owner=Address(ZERO))
    with reverts("InvalidSignature"):
        proxies.world.evm.transact(RELAY, HUB, call.encode(bytes(64) + b"\x1b"))
    for arguments in ((ZERO, HUB), (IMPLEMENTATION, ZERO)):
        with reverts("ZeroAddress"):
            proxies.world.evm.deploy(own_artifact("ProxyWalletFactory"), *arguments)


def test_a_fee_is_refused(proxies: Proxies) -> None:
    call = proxies.relayed(proxies.approving())
    owner, calldata = proxies.owner.address, call.calldata
    words = (owner, FACTORY, calldata, 1, 0, GAS, 0, bytes(65), b"")
    with reverts("PaymentNotSupported"):
        proxies.world.evm.transact(RELAY, HUB, RELAY_CALL.encode(*words))


def test_a_hub_of_another_chain_is_of_no_use(proxies: Proxies) -> None:
    hub = proxies.world.evm.deploy(own_artifact("RelayHub"), CHAIN_ID + 1)
    call = proxies.relayed(proxies.approving())._replace(hub=parse_address(hub.address))
    signature = sign_digest(call.digest(), proxies.owner.key)
    with reverts("ChainChanged"):
        proxies.world.evm.transact(RELAY, hub.address, call.encode(signature))


def test_a_call_that_fails_undoes_them_all_and_keeps_the_nonce(proxies: Proxies) -> None:
    collateral = proxies.world.collateral
    failing = InnerCall(
        parse_address(collateral.address), collateral.calldata("transfer", RELAY, 1)
    )
    call = proxies.relayed(proxies.approving(), failing)
    signature = sign_digest(call.digest(), proxies.owner.key)
    assert not proxies.world.evm.attempt(RELAY, HUB, call.encode(signature)).is_success
    assert proxies.allowance() == 0
    assert proxies.hub.call("getNonce", proxies.owner.address) == 0


def test_the_signed_gas_bounds_the_call(proxies: Proxies) -> None:
    call = proxies.relayed(proxies.approving(), gas=50_000)
    signature = sign_digest(call.digest(), proxies.owner.key)
    assert not proxies.world.evm.attempt(RELAY, HUB, call.encode(signature)).is_success
    assert proxies.allowance() == 0


def test_a_wallet_obeys_its_factory_alone(proxies: Proxies) -> None:
    proxies.relay(proxies.relayed(proxies.approving()))
    calldata = encode_proxy_calls((proxies.approving(9),))
    for stranger in (proxies.owner.address, RELAY, HUB):
        with reverts("NotFactory"):
            proxies.world.evm.transact(stranger, proxies.wallet, calldata)
    with reverts("NotFactory"):
        proxies.world.evm.transact(proxies.owner.address, IMPLEMENTATION, calldata)
    assert proxies.allowance() == 5


def test_an_owner_named_at_the_end_is_believed_of_the_hub_alone(proxies: Proxies) -> None:
    forged = encode_proxy_calls((proxies.approving(),)) + bytes.fromhex(proxies.owner.address[2:])
    proxies.world.evm.transact(RELAY, FACTORY, forged)
    assert proxies.allowance() == 0
    assert proxies.allowance(proxy_wallet_address(RELAY, FACTORY, IMPLEMENTATION)) == 5


def test_nobody_enters_another_factory(proxies: Proxies) -> None:
    proxies.relay(proxies.relayed(proxies.approving()))
    with reverts("WalletExists"):
        proxies.factory.send("cloneConstructor", b"", sender=RELAY)
    calldata = proxies.factory.calldata("cloneConstructor", b"")
    proxies.world.evm.attempt(RELAY, proxies.wallet, calldata)
    wallet = proxies.world.evm.at(proxies.wallet, own_artifact("ProxyWallet").abi)
    assert wallet.call("factory") == FACTORY


@pytest.mark.parametrize("kind", [0, 2])
def test_other_code_never_runs_in_a_wallets_place(proxies: Proxies, kind: int) -> None:
    target = proxies.approving()
    calldata = PROXY_CALLS.encode([(kind, target.to, 0, target.calldata)])
    with reverts("InvalidCallType"):
        proxies.world.evm.transact(proxies.owner.address, FACTORY, calldata)


def test_the_factory_knows_one_call(proxies: Proxies) -> None:
    for unknown in (b"", b"\1", b"\1\2\3\4" + bytes(64)):
        with reverts("UnknownCall"):
            proxies.world.evm.transact(proxies.owner.address, FACTORY, unknown)
    with reverts("NoCalls"):
        proxies.world.evm.transact(proxies.owner.address, FACTORY, encode_proxy_calls(()))


def test_a_wallet_takes_native_currency_and_spends_it(proxies: Proxies) -> None:
    proxies.relay(proxies.relayed(proxies.approving()))
    proxies.world.evm.rpc("anvil_setBalance", proxies.wallet, hex(NATIVE_WEI))
    proxies.relay(proxies.relayed(InnerCall(RELAY, b"", NATIVE_WEI), nonce=1))
    assert int(proxies.world.evm.rpc("eth_getBalance", proxies.wallet, "latest"), 16) == 0


def test_the_longest_calls_fit(proxies: Proxies) -> None:
    longest = (InnerCall(RELAY, b"\1" * PROXY_CALL_BYTES_MAX),) * 3
    many = (InnerCall(RELAY, b"\1" * 700),) * CALLS_PER_PROXY_MAX
    for nonce, calls in enumerate((longest, many)):
        assert len(encode_proxy_calls(calls)) <= PROXY_CALLDATA_BYTES_MAX
        assert proxies.relay(proxies.relayed(*calls, nonce=nonce)) < 1_500_000
    assert proxies.relay(proxies.relayed(proxies.approving(), nonce=2)) < 180_000


def of_wallet(world: World, owner: Actor, profile: int) -> Order:
    """Return a signed bid of the owner's proxy wallet, which has collateral."""
    wallet = world.proxy_factory.call("proxyWalletAddress", owner.address)
    world.endow(wallet, collateral=1_000 * UNIT)
    bid = world.buy(owner, world.yes, 100 * UNIT, 50)
    return world.sign(
        replace(bid, maker=wallet, signature_type=PROXY, profile=profile, signature=b""), owner
    )


@pytest.mark.parametrize("profile", [OWN_V1, OWN_V2])
def test_the_exchange_settles_an_order_of_a_proxy_wallet(world: World, profile: int) -> None:
    owner = world.makers[0]
    order = of_wallet(world, owner, profile)
    ask = world.sell(world.taker, world.yes, 100 * UNIT, 50)
    before = world.holdings(order.maker)
    world.match(ask, [order], Fill(100 * UNIT, (50 * UNIT,)))
    after = world.holdings(order.maker)
    assert (after[0] - before[0], after[1] - before[1]) == (-50 * UNIT, 100 * UNIT)


def test_the_exchange_names_its_factory(world: World) -> None:
    assert world.exchange.call("proxyFactory") == world.proxy_factory.address


def test_the_wallet_of_another_owner_is_refused(world: World) -> None:
    owner, other = world.makers[0], world.makers[1]
    order = of_wallet(world, owner, OWN_V2)
    with reverts("InvalidSigner"):
        world.exchange.call(
            "validateOrder",
            world.sign(replace(order, signer=other.address), other).fields,
            sender=world.operator,
        )


def test_an_owner_cancels_the_order_of_its_wallet_and_nobody_else(world: World) -> None:
    owner = world.makers[0]
    order = of_wallet(world, owner, OWN_V2)
    with reverts("NotOwner"):
        world.exchange.send("cancelOrder", order.fields, sender=world.makers[1].address)
    world.exchange.send("cancelOrder", order.fields, sender=owner.address)
    with reverts("OrderFilledOrCancelled"):
        world.exchange.call("validateOrder", order.fields, sender=world.operator)


def test_a_wallet_may_turn_off_its_owners_signing(world: World) -> None:
    order = of_wallet(world, world.makers[0], OWN_V2)
    world.exchange.call("validateOrder", order.fields, sender=world.operator)
    world.exchange.send("setOwnerSigning", False, sender=order.maker)  # noqa: FBT003 - by position
    with reverts("InvalidSigner"):
        world.exchange.call("validateOrder", order.fields, sender=world.operator)


def test_without_a_factory_proxy_wallets_are_refused(world: World) -> None:
    exchange = deploy_exchange(world, proxyFactory=ZERO)
    order = of_wallet(world, world.makers[0], OWN_V2)
    with reverts("InvalidSignatureType"):
        exchange.call("validateOrder", order.fields, sender=world.operator)
