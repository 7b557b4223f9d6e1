"""Signing profiles of a deployment: the struct versions and domains that orders may be signed for.

Clients hard-code the domain that they sign for. An exchange contract has a list of such domains and
accepts an order signed for any of them, so that orders of different clients trade with each other.
A domain of another exchange is allowed in the sandbox only: on a public chain the signature could be
replayed at that exchange.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from foretell.domain.errors.exchange import ForeignProfile
from foretell.domain.exchange.order import SignedOrder
from foretell.domain.exchange.signing.structs import STRUCTS, OrderStruct
from foretell.domain.values.eip712 import Eip712Domain, typed_digest
from foretell.domain.values.hexadecimal import Address, Bytes32, word_of

PROFILES_MAX: Final = 8


class SigningProfile(NamedTuple):
    """A way to sign an order: the version of the struct, and the domain.

    A `verifying_contract` of None stands for the exchange itself.
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
OWN_PROFILE_V2: Final = SigningProfile(2, "Foretell Exchange", "2")
OWN_PROFILES: Final = (OWN_PROFILE, OWN_PROFILE_V2)
"""The profiles of a deployment outside of the sandbox."""

SANDBOX_PROFILES: Final = (
    OWN_PROFILE,
    SigningProfile(
        1,
        "Polymarket CTF Exchange",
        "1",
        Address("0xdfe02eb6733538f8ea35d585af8de5958ad99e40"),
    ),
    SigningProfile(1, "CTF Exchange", "1", Address("0xb5592f7ccca122558d2201e190826276f3a661cb")),
    OWN_PROFILE_V2,
    SigningProfile(
        2,
        "Polymarket CTF Exchange",
        "2",
        Address("0xe111180000d2663c0091e4f400237545b87b996b"),
    ),
    SigningProfile(2, "CTF Exchange", "2", Address("0xaa1b8de834e16ec69c044f5300041673c968c9ef")),
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
    OWN_PROFILE_V2,
    SigningProfile(
        2,
        "Polymarket CTF Exchange",
        "2",
        Address("0xe2222d279d744050d28e00520010520000310f59"),
    ),
    SigningProfile(2, "CTF Exchange", "2", Address("0xe7fa09ca716fdf498d74aff618d32afeacc310ab")),
)


class Separators(NamedTuple):
    """The domain separators and structs of one exchange, each at the index of its profile."""

    by_profile: tuple[bytes, ...]
    structs: tuple[OrderStruct, ...]
    by_version: Mapping[int, tuple[int, ...]]
    """The indexes of the profiles of each version of the struct that is accepted."""

    def first_of_version(self, version: int) -> int | None:
        """Return the first profile of a version of the struct, None if the version is not accepted."""
        found = self.by_version.get(version)
        return None if found is None else found[0]

    def struct_hash(self, order: SignedOrder) -> bytes:
        """Return the struct hash of an order, which is the same under every profile of its version."""
        return STRUCTS[order.struct_version].hash(order)

    def digest(self, order: SignedOrder, profile: int) -> bytes:
        """Return the digest that is signed for an order under a profile."""
        return typed_digest(self.by_profile[profile], self.structs[profile].hash(order))

    def order_id(self, order: SignedOrder) -> Bytes32:
        """Return the order's id: its digest under its profile."""
        return word_of(self.digest(order, order.profile))


def separators(profiles: Sequence[SigningProfile], chain_id: int, exchange: Address) -> Separators:
    """Return the separators and structs of a deployment's profiles, in their order."""
    assert 0 < len(profiles) <= PROFILES_MAX
    return Separators(
        tuple(profile.separator(chain_id, exchange) for profile in profiles),
        tuple(STRUCTS[profile.struct_version] for profile in profiles),
        {
            version: tuple(
                index for index, profile in enumerate(profiles) if profile.struct_version == version
            )
            for version in sorted({profile.struct_version for profile in profiles})
        },
    )


def check_profiles(profiles: Sequence[SigningProfile], *, is_sandbox: bool) -> None:
    """Refuse a profile of another exchange on a public chain."""
    for profile in profiles:
        if profile.verifying_contract is not None and not is_sandbox:
            raise ForeignProfile(profile.name, profile.verifying_contract)
