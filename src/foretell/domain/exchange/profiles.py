"""The signing profiles that a deployment accepts: which struct, signed for which domain.

Clients hard-code the domain that they sign for. An exchange contract holds a list of such domains
and takes an order signed for any of them, so that orders of different clients trade with each
other. A foreign domain is for the sandbox alone: on a public chain such a signature could be
replayed at the exchange that it names.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from foretell.domain.errors.exchange import ForeignProfile
from foretell.domain.exchange.order import SignedOrder, order_struct_hash
from foretell.domain.values.eip712 import Eip712Domain, typed_digest
from foretell.domain.values.hexadecimal import Address, Bytes32, word_of

PROFILES_MAX: Final = 8


class SigningProfile(NamedTuple):
    """One way to sign an order: the version of the struct and the domain it is signed for.

    `verifying_contract` None means the exchange itself.
    """

    struct_version: int
    name: str
    version: str
    verifying_contract: Address | None = None

    def separator(self, chain_id: int, exchange: Address) -> bytes:
        """Return the domain separator of this profile on an exchange."""
        contract = self.verifying_contract or exchange
        return Eip712Domain(self.name, self.version, chain_id, contract).separator()


OWN_PROFILE: Final = SigningProfile(1, "Foretell Exchange", "1")

SANDBOX_PROFILES: Final = (
    OWN_PROFILE,
    SigningProfile(
        1,
        "Polymarket CTF Exchange",
        "1",
        Address("0xdfe02eb6733538f8ea35d585af8de5958ad99e40"),
    ),
    SigningProfile(1, "CTF Exchange", "1", Address("0xb5592f7ccca122558d2201e190826276f3a661cb")),
)

SANDBOX_NEG_RISK_PROFILES: Final = (
    OWN_PROFILE,
    SigningProfile(
        1,
        "Polymarket CTF Exchange",
        "1",
        Address("0xd91e80cf2e7be2e162c6513ced06f1dd0da35296"),
    ),
    SigningProfile(1, "CTF Exchange", "1", Address("0xef02d1ea5b42432c4e99c2785d1a4020d2fb24f5")),
)


class Separators(NamedTuple):
    """The domain separators of one exchange, each at the index of its profile."""

    by_profile: tuple[bytes, ...]

    def order_id(self, order: SignedOrder) -> Bytes32:
        """Return the order's identity: its digest under the profile that it names."""
        return word_of(typed_digest(self.by_profile[order.profile], order_struct_hash(order)))


def separators(profiles: Sequence[SigningProfile], chain_id: int, exchange: Address) -> Separators:
    """Return the separators of a deployment's profiles, in their order."""
    assert 0 < len(profiles) <= PROFILES_MAX
    return Separators(tuple(profile.separator(chain_id, exchange) for profile in profiles))


def check_profiles(profiles: Sequence[SigningProfile], *, is_sandbox: bool) -> None:
    """Refuse a list that would let orders of another exchange in on a public chain."""
    for profile in profiles:
        if profile.verifying_contract is not None and not is_sandbox:
            raise ForeignProfile(profile.name, profile.verifying_contract)
