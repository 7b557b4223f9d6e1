"""Domains that a signature may be for instead of one that is accepted, to name them to its signer.

A client that is set to another chain, to the other exchange or to another installation signs a domain
that is known. Each is tried in turn; their number bounds what a refused order costs.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from foretell.domain.exchange.profiles import SigningProfile
from foretell.domain.values.hexadecimal import Address, checksum_address

CANDIDATES_MAX: Final = 40
"""The most domains that are tried for one refused order of a version of the struct."""

CHAIN_IDS: Final = (137, 80002, 1, 31337)
"""The chains that clients are often set to."""

_V1_NAME: Final = "Polymarket CTF Exchange"

ELSEWHERE: Final = (
    (137, SigningProfile(1, _V1_NAME, "1", Address("0x4bfb41d5b3570defd03c39a9a4d8de6bd8b8982e"))),
    (137, SigningProfile(1, _V1_NAME, "1", Address("0xc5d563a36ae78145c45a50134d48a1215220f80a"))),
    (
        80002,
        SigningProfile(1, _V1_NAME, "1", Address("0xc5d563a36ae78145c45a50134d48a1215220f80a")),
    ),
    (
        80002,
        SigningProfile(
            1, "Kuest CTF Exchange", "1", Address("0xe79717fe8456c620cfde6156b6aead79c4875ca2")
        ),
    ),
    (
        80002,
        SigningProfile(
            1, "Kuest CTF Exchange", "1", Address("0xccbe425a0aa24dcef81f2e6ede3568a1683e7cbe")
        ),
    ),
    (137, SigningProfile(2, _V1_NAME, "3", Address("0xe3333700ca9d93003f00f0f71f8515005f6c00aa"))),
    (
        80002,
        SigningProfile(2, _V1_NAME, "3", Address("0x9fe6e61422adb6f610d8597f9684b16912d50c3d")),
    ),
)
"""Domains that clients contain and no deployment here accepts, with their chains."""


class KnownDomain(NamedTuple):
    """A domain that is not accepted for the orders of an exchange."""

    chain_id: int
    profile: SigningProfile
    exchange: Address

    @property
    def separator(self) -> bytes:
        """The domain's separator."""
        return self.profile.separator(self.chain_id, self.exchange)

    def record(self) -> dict[str, object]:
        """Return the domain as clients read it."""
        return {
            "name": self.profile.name,
            "version": self.profile.version,
            "chainId": self.chain_id,
            "verifyingContract": checksum_address(self.profile.verifying_contract or self.exchange),
        }

    def text(self) -> str:
        """Return the domain as a message names it."""
        shown = self.record()
        return (
            f"{shown['name']!r} version {shown['version']} on chain {shown['chainId']} with the"
            f" contract {shown['verifyingContract']}"
        )


def known_domains(
    profiles_by_exchange: Mapping[Address, Sequence[SigningProfile]],
    exchange: Address,
    chain_id: int,
    version: int,
) -> tuple[KnownDomain, ...]:
    """Return the domains of a version that the orders of an exchange are not accepted for."""
    accepted = {profile.separator(chain_id, exchange) for profile in profiles_by_exchange[exchange]}
    by_separator: dict[bytes, KnownDomain] = {}
    for domain in _domains(profiles_by_exchange, exchange, chain_id):
        if domain.profile.struct_version == version and domain.separator not in accepted:
            by_separator.setdefault(domain.separator, domain)
    return tuple(by_separator.values())[:CANDIDATES_MAX]


def _domains(
    profiles_by_exchange: Mapping[Address, Sequence[SigningProfile]],
    exchange: Address,
    chain_id: int,
) -> Iterator[KnownDomain]:
    """Yield the likely ones first: the other exchange here, then other chains, then other places."""
    for other, profiles in profiles_by_exchange.items():
        yield from (KnownDomain(chain_id, profile, other) for profile in profiles)
    for known in CHAIN_IDS:
        for other, profiles in profiles_by_exchange.items():
            yield from (KnownDomain(known, profile, other) for profile in profiles)
    yield from (KnownDomain(known, profile, exchange) for known, profile in ELSEWHERE)
