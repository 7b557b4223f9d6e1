"""Wrong combinations of wallet, signer, type and domain, each refused with an explanation of its own."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest
from tests.rigs.orders.version_2 import (
    OWN_V2,
    V2_PROFILES,
    a_deposit_wallet,
    a_v2_buy,
    a_wallet_order,
    signed_by_wallet,
)
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import (
    CHAIN_ID,
    EXCHANGE,
    NEG_RISK_EXCHANGE,
    a_buy,
    a_deployment,
    a_key,
    an_address,
    the_separators,
)

from foretell.domain.errors.exchange import SignerMismatch
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.exchange.profiles import (
    SANDBOX_NEG_RISK_PROFILES,
    SANDBOX_PROFILES,
    SigningProfile,
)
from foretell.domain.exchange.signing.structs import STRUCTS
from foretell.domain.exchange.signing.wallet_signatures import wallet_digest, wallet_signature
from foretell.domain.values.eip712 import (
    CURVE_ORDER,
    personal_digest,
    recover_signer,
    sign_digest,
    typed_digest,
)
from foretell.domain.values.hexadecimal import Address
from foretell.trading.accounts.misdirected import CANDIDATES_MAX, ELSEWHERE, known_domains
from foretell.trading.accounts.signers import Signers

pytestmark = pytest.mark.anyio

OTHER_CHAINS: Final = (137, 1, 31337)
WALLET: Final = a_deposit_wallet("alice")
ATTEMPTS_MAX: Final = 50


def struct_hash(order: SignedOrder) -> bytes:
    return STRUCTS[order.struct_version].hash(order)


def signed_for(
    order: SignedOrder, profile: SigningProfile, chain_id: int, exchange: Address = EXCHANGE
) -> SignedOrder:
    """Return an order with a signature for another domain."""
    digest = typed_digest(profile.separator(chain_id, exchange), struct_hash(order))
    return msgspec.structs.replace(order, signature=sign_digest(digest, a_key("alice")))


def unsigned(version: int) -> SignedOrder:
    return a_buy("alice") if version == 1 else a_v2_buy("alice")


def of_other_domains() -> Iterator[SignedOrder]:
    """Yield orders of both versions for other chains, the other exchange and other installations."""
    for profile in SANDBOX_PROFILES:
        for chain_id in OTHER_CHAINS:
            yield signed_for(unsigned(profile.struct_version), profile, chain_id)
    for profile in SANDBOX_NEG_RISK_PROFILES:
        order = unsigned(profile.struct_version)
        yield signed_for(order, profile, CHAIN_ID, NEG_RISK_EXCHANGE)
    for chain_id, profile in ELSEWHERE:
        yield signed_for(unsigned(profile.struct_version), profile, chain_id)


def personal(order: SignedOrder) -> SignedOrder:
    digest = personal_digest(the_separators().digest(order, order.profile))
    return msgspec.structs.replace(order, signature=sign_digest(digest, a_key("alice")))


def nested(**fields: Any) -> SignedOrder:
    """Return a wallet's order, nested in another chain or exchange, or not nested at all."""
    order = a_wallet_order("alice", WALLET)
    separator = fields.get("separator", the_separators().by_profile[OWN_V2])
    contents = fields.get("contents", struct_hash(order))
    digest = wallet_digest(separator, contents, order.maker, fields.get("chain_id", CHAIN_ID))
    digest = fields.get("digest", digest)
    inner = sign_digest(digest, a_key(fields.get("owner", "alice")))
    return msgspec.structs.replace(order, signature=wallet_signature(inner, separator, contents))


def of_wallets() -> Iterator[SignedOrder]:
    plain = a_wallet_order("alice", WALLET)
    for chain_id in OTHER_CHAINS:
        yield nested(chain_id=chain_id)
    for profile in SANDBOX_NEG_RISK_PROFILES[3:]:
        yield nested(separator=profile.separator(CHAIN_ID, NEG_RISK_EXCHANGE))
    for profile in SANDBOX_PROFILES[3:]:
        yield nested(separator=profile.separator(137, EXCHANGE))
    yield nested(separator=bytes(32))
    yield nested(digest=the_separators().digest(plain, OWN_V2))
    yield nested(contents=bytes(32))
    yield a_wallet_order("alice", a_deposit_wallet("bob"))
    yield msgspec.structs.replace(plain, v2=None)


def of_wrong_wallets() -> Iterator[SignedOrder]:
    safe = a_deployment().safe_of(an_address("alice"))
    yield a_buy("alice", maker=safe)
    yield a_buy("alice", signature_type=SignatureType.SAFE)
    yield a_buy("alice", maker=safe, signature_type=SignatureType.PROXY)
    proxy = a_deployment().proxy_wallet_of(an_address("alice"))
    yield a_buy("alice", maker=proxy)
    yield a_buy("alice", maker=proxy, signature_type=SignatureType.SAFE)
    yield a_buy("alice", signature_type=SignatureType.PROXY)
    others = a_deployment().proxy_wallet_of(an_address("bob"))
    yield a_buy("alice", maker=others, signature_type=SignatureType.PROXY)
    yield a_buy("bob")
    yield a_buy("alice", taker=an_address("bob"))
    yield personal(a_buy("alice"))
    order = a_buy("alice")
    high_s = CURVE_ORDER - int.from_bytes(order.signature[32:64], "big")
    twin = order.signature[:32] + high_s.to_bytes(32, "big") + bytes([55 - order.signature[64]])
    for wrong in (twin, order.signature[:64], order.signature[:64] + b"\x1d"):
        yield msgspec.structs.replace(order, signature=wrong)


async def test_forty_wrong_orders_have_forty_explanations(rig: TradingRig, alice: Trader) -> None:
    rig.chain.contracts.add(WALLET)
    orders = [*of_other_domains(), *of_wallets(), *of_wrong_wallets()]
    messages: set[str] = set()
    for order in orders:
        response = await alice.place(order)
        body = response.json()
        assert response.status_code == 400, body
        assert body["message"] not in messages, body
        messages.add(body["message"])
    assert len(messages) == len(orders) >= 40


@pytest.mark.parametrize("version", [1, 2])
def test_the_known_domains_are_bounded(version: int) -> None:
    profiles = {EXCHANGE: SANDBOX_PROFILES, NEG_RISK_EXCHANGE: SANDBOX_NEG_RISK_PROFILES}
    domains = known_domains(profiles, EXCHANGE, CHAIN_ID, version)
    separators = {domain.separator for domain in domains}
    assert len(separators) == len(domains) <= CANDIDATES_MAX
    assert not separators & set(the_separators().by_profile)


async def test_the_domain_that_fits_is_a_detail(alice: Trader) -> None:
    response = await alice.place(signed_for(a_buy("alice"), SANDBOX_PROFILES[1], 137))
    assert response.json()["details"]["signed_for"] == {
        "name": "Polymarket CTF Exchange",
        "version": "1",
        "chainId": 137,
        "verifyingContract": "0xdFE02Eb6733538f8Ea35D585af8DE5958AD99E40",
    }


@pytest.mark.parametrize(
    "order",
    [a_buy("alice", signature=sign_digest(bytes(32), a_key("bob")))]
    + [a_v2_buy("alice", signature=sign_digest(bytes(32), a_key("bob")))]
    + [
        signed_by_wallet(a_wallet_order("alice", WALLET, profile=each), "bob")
        for each in V2_PROFILES
    ],
)
async def test_a_wrong_signature_costs_a_bounded_number_of_recoveries(order: SignedOrder) -> None:
    attempts = 0

    def recover(digest: bytes, signature: bytes, settle: Any) -> None:
        nonlocal attempts
        attempts += 1
        settle(recover_signer(digest, signature))

    deployment = a_deployment()
    signers = Signers(deployment.profiles_of, CHAIN_ID, recover, exchanges=deployment.exchanges)
    with pytest.raises(SignerMismatch):
        await signers.identify(order, EXCHANGE)
    attempts = 0
    with pytest.raises(SignerMismatch):
        await signers.identify(order, EXCHANGE)
    assert attempts <= ATTEMPTS_MAX
