from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from py_order_utils.builders import OrderBuilder  # type: ignore[import-untyped]
from py_order_utils.model import OrderData  # type: ignore[import-untyped]
from py_order_utils.signer import Signer  # type: ignore[import-untyped]
from tests.rigs.trading import recover_here
from tests.rigs.values import (
    CHAIN_ID,
    EXCHANGE,
    NEG_RISK_EXCHANGE,
    a_buy,
    a_key,
    a_signed_order,
    an_address,
    an_order_id,
)

from foretell.domain.errors.exchange import SignerMismatch
from foretell.domain.errors.families import MalformedSignature
from foretell.domain.exchange.order import Side, SignatureType
from foretell.domain.exchange.profiles import OWN_PROFILE, SANDBOX_PROFILES, SigningProfile
from foretell.trading.accounts.signers import Identity, SettleSigner, Signers

pytestmark = pytest.mark.anyio


class Recovery:
    """Recovers signers, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, digest: bytes, signature: bytes, settle: SettleSigner) -> None:
        self.count += 1
        recover_here(digest, signature, settle)


def some_signers(*profiles: SigningProfile, chain_id: int = CHAIN_ID) -> Signers:
    """Return signers under these profiles, or else under the sandbox's."""
    return Signers(lambda _: profiles or SANDBOX_PROFILES, chain_id, recover_here)


@pytest.fixture
def signers() -> Signers:
    return some_signers()


@pytest.mark.parametrize("profile", [0, 1, 2])
async def test_an_order_is_identified_under_the_domain_that_was_signed(
    signers: Signers, profile: int
) -> None:
    order = a_buy("alice", profile=profile)
    asked = msgspec.structs.replace(order, profile=0)
    assert await signers.identify(asked, EXCHANGE) == Identity(profile, an_order_id(order))


async def test_the_domain_that_a_signer_used_last_is_tried_first() -> None:
    recovery = Recovery()
    signers = Signers(lambda _: SANDBOX_PROFILES, CHAIN_ID, recovery)
    counts = []
    for profile in (2, 2, 1):
        assert (
            await signers.identify(a_buy("alice", profile=profile), EXCHANGE)
        ).profile == profile
        counts.append(recovery.count)
    assert counts == [3, 4, 7]


@pytest.mark.case("C-02")
async def test_an_order_for_one_exchange_is_refused_by_another(signers: Signers) -> None:
    order = a_buy("alice", exchange=NEG_RISK_EXCHANGE)
    with pytest.raises(SignerMismatch):
        await signers.identify(order, EXCHANGE)
    identity = await signers.identify(order, NEG_RISK_EXCHANGE)
    assert identity.order_id == an_order_id(order, NEG_RISK_EXCHANGE)


@pytest.mark.case("C-04")
async def test_a_signature_of_another_address_or_of_none_is_refused(signers: Signers) -> None:
    with pytest.raises(SignerMismatch):
        await signers.identify(a_buy("alice", signature=a_buy("bob").signature), EXCHANGE)
    off_curve = b"\xff" * 32 + b"\x01" * 32 + b"\x1b"
    zeros = bytes(64) + b"\x1b"
    with pytest.raises(MalformedSignature):
        await signers.identify(a_buy("alice", signature=off_curve), EXCHANGE)
    with pytest.raises(MalformedSignature):
        await signers.identify(a_buy("alice", signature=zeros), EXCHANGE)


async def test_only_a_bounded_number_of_signers_is_kept() -> None:
    recovery = Recovery()
    signers = Signers(lambda _: SANDBOX_PROFILES, CHAIN_ID, recovery, kept_max=2)
    counts = []
    for number in (0, 1, 2, 2, 1, 0):
        before = recovery.count
        await signers.identify(a_buy(f"signer {number}", profile=1), EXCHANGE)
        counts.append(recovery.count - before)
    assert counts == [2, 2, 2, 1, 1, 2]


@given(
    salt=st.integers(0, 2**32),
    token_id=st.integers(0, 2**256 - 1),
    maker_amount=st.integers(1, 10**12),
    taker_amount=st.integers(1, 10**12),
    side=st.sampled_from(Side),
)
async def test_an_order_that_a_client_built_and_signed_is_identified(
    salt: int, token_id: int, maker_amount: int, taker_amount: int, side: Side
) -> None:
    """The client has a domain, an encoder and a signer of its own."""
    contract = SANDBOX_PROFILES[1].verifying_contract
    client = OrderBuilder(contract, CHAIN_ID, Signer("0x" + a_key("alice").hex()), lambda: salt)
    built = client.build_signed_order(
        OrderData(
            maker=an_address("alice"),
            tokenId=str(token_id),
            makerAmount=str(maker_amount),
            takerAmount=str(taker_amount),
            side=int(side),
            feeRateBps="0",
            nonce="0",
            signer=Signer("0x" + a_key("alice").hex()).address(),
        )
    )
    order = a_signed_order(
        salt=str(salt),
        token_id=str(token_id),
        maker_amount=maker_amount,
        taker_amount=taker_amount,
        side=side,
        signature=bytes.fromhex(built.signature.removeprefix("0x")),
    )
    identity = await some_signers().identify(order, EXCHANGE)
    assert identity == (1, client._create_struct_hash(built.order))


@pytest.mark.parametrize("last", [0, 1, 2])
@pytest.mark.parametrize("profile", [0, 1, 2])
async def test_a_profile_is_found_whichever_the_signer_used_last(
    signers: Signers, profile: int, last: int
) -> None:
    await signers.identify(a_signed_order(profile=last), EXCHANGE)
    order = a_signed_order(profile=profile)
    assert await signers.identify(order, EXCHANGE) == Identity(profile, an_order_id(order))


@pytest.mark.parametrize(
    "elsewhere",
    [
        some_signers(OWN_PROFILE, chain_id=137),
        some_signers(OWN_PROFILE._replace(version="2")),
        some_signers(OWN_PROFILE._replace(name="Foretell exchange")),
        some_signers(*SANDBOX_PROFILES[1:]),
    ],
    ids=["chain", "version", "name", "foreign profiles alone"],
)
async def test_an_order_signed_for_this_exchange_is_refused_elsewhere(elsewhere: Signers) -> None:
    with pytest.raises(SignerMismatch):
        await elsewhere.identify(a_signed_order(), EXCHANGE)


@pytest.mark.parametrize("profile", [1, 2])
async def test_a_foreign_order_is_refused_where_only_the_own_profile_is_served(
    profile: int,
) -> None:
    with pytest.raises(SignerMismatch, match=an_address("alice")):
        await some_signers(OWN_PROFILE).identify(a_signed_order(profile=profile), EXCHANGE)


@pytest.mark.parametrize(
    "altered",
    [
        {"salt": "2"},
        {"maker": an_address("bob")},
        {"taker": an_address("bob")},
        {"token_id": "1"},
        {"maker_amount": 1},
        {"taker_amount": 1},
        {"expiration_s": 1},
        {"nonce": 1},
        {"fee_rate_bps": 1},
        {"side": Side.SELL},
        {"signature_type": SignatureType.SAFE},
        {"signer": an_address("bob")},
    ],
    ids=lambda altered: next(iter(altered)),
)
async def test_every_signed_field_is_bound_by_the_signature(
    signers: Signers, altered: dict[str, Any]
) -> None:
    order = a_signed_order(signature=a_signed_order().signature, **altered)
    with pytest.raises(SignerMismatch):
        await signers.identify(order, EXCHANGE)
