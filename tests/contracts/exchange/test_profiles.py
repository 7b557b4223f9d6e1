from dataclasses import replace
from typing import Any

import pytest
from eth_account.messages import encode_typed_data
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts.evm import reverts
from tests.contracts.market import World, deploy_exchange
from tests.contracts.signing import (
    CHAIN_ID,
    FOREIGN_V1,
    FOREIGN_V2,
    OWN_V1,
    OWN_V2,
    PROFILES,
    ZERO,
    Order,
)

PROFILES_MAX = 8

words = st.integers(0, 2**256 - 1)
addresses = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())
small = st.integers(0, 255)
signatures = st.binary(max_size=512)

orders_v1 = st.builds(
    Order,
    salt=words,
    maker=addresses,
    signer=addresses,
    taker=addresses,
    token_id=words,
    maker_amount=words,
    taker_amount=words,
    expiration=words,
    nonce=words,
    fee_rate_bps=words,
    side=small,
    signature_type=small,
    profile=st.sampled_from((OWN_V1, FOREIGN_V1)),
    signature=signatures,
)
orders_v2 = st.builds(
    Order,
    salt=words,
    maker=addresses,
    signer=addresses,
    token_id=words,
    maker_amount=words,
    taker_amount=words,
    side=small,
    signature_type=small,
    timestamp=words,
    metadata=st.binary(min_size=32, max_size=32),
    builder=st.binary(min_size=32, max_size=32),
    profile=st.sampled_from((OWN_V2, FOREIGN_V2)),
    signature=signatures,
)
AN_ORDER = Order(ZERO, ZERO, token_id=1, maker_amount=1, taker_amount=1, side=0)


@given(order=orders_v1)
def test_hash_order_of_v1_is_that_of_a_typed_data_encoder(world: World, order: Order) -> None:
    assert world.exchange.call("hashOrder", order.fields) == world.hash(order)


@given(order=orders_v2)
def test_hash_order_of_v2_is_that_of_a_typed_data_encoder(world: World, order: Order) -> None:
    assert world.exchange.call("hashOrder", order.fields) == world.hash(order)


@given(order=orders_v1, other=st.integers(0, 3))
def test_an_order_has_a_different_hash_under_every_profile(
    world: World, order: Order, other: int
) -> None:
    plain = replace(order, taker=ZERO, expiration=0, nonce=0, fee_rate_bps=0)
    hashes = {
        world.exchange.call("hashOrder", replace(plain, profile=profile).fields)
        for profile in (plain.profile, other)
    }
    assert len(hashes) == len({plain.profile, other})


@pytest.mark.parametrize("profile", range(len(PROFILES)))
def test_domain_separators_are_those_of_a_typed_data_encoder(world: World, profile: int) -> None:
    known = PROFILES[profile]
    own = known.verifying_contract == ZERO
    message = encode_typed_data(
        domain_data={
            "name": known.name,
            "version": known.version,
            "chainId": CHAIN_ID,
            "verifyingContract": world.exchange.address if own else known.verifying_contract,
        },
        message_types={"Order": [{"name": "salt", "type": "uint256"}]},
        message_data={"salt": 1},
    )
    assert world.exchange.call("domainSeparator(uint256)", profile) == message.header
    assert world.exchange.call("structVersion", profile) == known.struct_version


def test_profile_count_is_that_of_the_list(world: World) -> None:
    assert world.exchange.call("profileCount") == len(PROFILES)


@pytest.mark.parametrize("name", ["domainSeparator(uint256)", "structVersion"])
def test_a_profile_beyond_the_list_is_refused(world: World, name: str) -> None:
    with reverts("InvalidProfile"):
        world.exchange.call(name, len(PROFILES))


@pytest.mark.parametrize("profile", [len(PROFILES), 255])
def test_an_order_of_no_profile_has_no_hash(world: World, profile: int) -> None:
    with reverts("InvalidProfile"):
        world.exchange.call("hashOrder", replace(AN_ORDER, profile=profile).fields)


@pytest.mark.parametrize(
    "order",
    [
        replace(AN_ORDER, timestamp=1),
        replace(AN_ORDER, metadata=b"\1" * 32),
        replace(AN_ORDER, builder=b"\1" * 32),
        replace(AN_ORDER, profile=OWN_V2, taker="0x" + "11" * 20),
        replace(AN_ORDER, profile=OWN_V2, expiration=1),
        replace(AN_ORDER, profile=OWN_V2, nonce=1),
        replace(AN_ORDER, profile=OWN_V2, fee_rate_bps=1),
    ],
)
def test_a_value_in_a_field_that_is_not_signed_is_refused(world: World, order: Order) -> None:
    """An order has one identity: fields outside the hash must not vary."""
    with reverts("UnsignedField"):
        world.exchange.call("hashOrder", order.fields)


def test_an_exchange_needs_a_profile(world: World) -> None:
    with reverts("NoProfiles"):
        deploy_exchange(world, **listed([]))


def test_an_exchange_accepts_the_greatest_number_of_profiles(world: World) -> None:
    exchange = deploy_exchange(world, **listed([1, 2] * (PROFILES_MAX // 2)))
    assert exchange.call("profileCount") == PROFILES_MAX
    versions = [exchange.call("structVersion", profile) for profile in range(PROFILES_MAX)]
    assert versions == [1, 2] * (PROFILES_MAX // 2)


@pytest.mark.parametrize("version", [0, 3])
def test_an_exchange_supports_two_structs(world: World, version: int) -> None:
    with reverts("InvalidProfile"):
        deploy_exchange(world, **listed([1, version]))


@pytest.mark.parametrize("short", ["profileVersions", "profileContracts", "profileStructs"])
def test_an_exchange_requires_profile_lists_of_equal_length(world: World, short: str) -> None:
    lists = listed([1, 2])
    with reverts("MismatchedArrayLengths"):
        deploy_exchange(world, **lists | {short: lists[short][:1]})


def listed(structs: list[int]) -> dict[str, list[Any]]:
    """Return the constructor's lists of profiles with these structs."""
    return {
        "profileNames": ["CTF Exchange"] * len(structs),
        "profileVersions": [str(version) for version in structs],
        "profileContracts": [ZERO] * len(structs),
        "profileStructs": structs,
    }
