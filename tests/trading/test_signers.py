import msgspec
import pytest
from tests.build import CHAIN_ID, EXCHANGE, NEG_RISK_EXCHANGE, a_buy, an_order_id
from tests.trading.venue import recover_here

from foretell.domain.errors import MalformedSignature
from foretell.domain.matching_errors import SignerMismatch
from foretell.domain.profiles import SANDBOX_PROFILES
from foretell.trading.signers import Identity, Signers

pytestmark = pytest.mark.anyio


@pytest.fixture
def signers() -> Signers:
    return Signers(lambda _: SANDBOX_PROFILES, CHAIN_ID, recover_here)


@pytest.mark.parametrize("profile", [0, 1, 2])
async def test_an_order_is_identified_under_the_domain_that_was_signed(
    signers: Signers, profile: int
) -> None:
    order = a_buy("alice", profile=profile)
    asked = msgspec.structs.replace(order, profile=0)
    assert await signers.identify(asked, EXCHANGE) == Identity(profile, an_order_id(order))


async def test_the_domain_that_a_signer_used_last_is_tried_first(signers: Signers) -> None:
    order = a_buy("alice", profile=2)
    await signers.identify(order, EXCHANGE)
    assert signers._profile_by_signer[order.signer] == 2
    assert (await signers.identify(a_buy("alice", profile=1), EXCHANGE)).profile == 1


async def test_an_order_for_one_exchange_is_none_for_another(signers: Signers) -> None:
    order = a_buy("alice", exchange=NEG_RISK_EXCHANGE)
    with pytest.raises(SignerMismatch):
        await signers.identify(order, EXCHANGE)
    identity = await signers.identify(order, NEG_RISK_EXCHANGE)
    assert identity.order_id == an_order_id(order, NEG_RISK_EXCHANGE)


async def test_what_another_signed_or_nobody_can_have_signed_is_refused(signers: Signers) -> None:
    with pytest.raises(SignerMismatch):
        await signers.identify(a_buy("alice", signature=a_buy("bob").signature), EXCHANGE)
    off_curve = b"\xff" * 32 + b"\x01" * 32 + b"\x1b"
    with pytest.raises(MalformedSignature):
        await signers.identify(a_buy("alice", signature=off_curve), EXCHANGE)


async def test_only_so_many_signers_are_remembered() -> None:
    signers = Signers(lambda _: SANDBOX_PROFILES, CHAIN_ID, recover_here, kept_max=2)
    for number in range(4):
        await signers.identify(a_buy(f"signer {number}"), EXCHANGE)
    assert len(signers._profile_by_signer) == 2
