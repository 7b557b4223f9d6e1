"""Recovery of an order's signer, which gives its signing profile and its id."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from foretell.domain.errors.exchange import ContentsMismatch, ForeignSeparator, SignerMismatch
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.order import OrderVersionMismatch
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.exchange.profiles import Separators, SigningProfile, separators
from foretell.domain.exchange.signing.wallet_signatures import (
    named_contents,
    named_separator,
    owner_signature,
    wallet_digest,
)
from foretell.domain.values.eip712 import (
    SIGNATURE_BYTES,
    personal_digest,
    recover_signer,
    typed_digest,
)
from foretell.domain.values.hexadecimal import Address, Bytes32, checksum_address, word_of
from foretell.runtime.lru import LruCache
from foretell.trading.accounts.misdirected import CHAIN_IDS, KnownDomain, known_domains

SIGNERS_KEPT_MAX: Final = 20_000

_CONTRACT: Final = SignatureType.CONTRACT

SettleSigner = Callable[[Address | ForetellError], None]
"""Takes the signer of a digest, or a refusal: MalformedSignature, or that too many wait."""
Recover = Callable[[bytes, bytes, SettleSigner], None]
"""Finds the address that signed a digest, and calls back with it, at once or later.

It is the most expensive step of all, so another process does it, unless nothing else waits.
"""
SettleIdentity = Callable[["Identity | ForetellError | None"], None]
"""Takes the identity of an order or a refusal; None if other profiles must be tried."""


class Identity(NamedTuple):
    """The profile that an order was signed under, and the id that it has under it."""

    profile: int
    order_id: Bytes32


class Signers:
    """Identifies orders by their signatures; remembers the profile that each signer used last."""

    def __init__(
        self,
        profiles_of: Callable[[Address], Sequence[SigningProfile]],
        chain_id: int,
        recover: Recover,
        *,
        exchanges: Sequence[Address] = (),
        kept_max: int = SIGNERS_KEPT_MAX,
    ) -> None:
        self._exchanges = exchanges
        self._domains_by_exchange: dict[tuple[Address, int], Sequence[KnownDomain]] = {}
        self.profiles_of = profiles_of
        self._chain_id = chain_id
        self._recover = recover
        self._separators_by_exchange: dict[Address, Separators] = {}
        self._v1_profile_by_signer: LruCache[Address, int] = LruCache(kept_max)
        self._v2_profile_by_signer: LruCache[Address, int] = LruCache(kept_max)

    def separators(self, exchange: Address) -> Separators:
        """Return the separators of the domains that orders for an exchange may be signed for."""
        known = self._separators_by_exchange.get(exchange)
        if known is None:
            known = separators(self.profiles_of(exchange), self._chain_id, exchange)
            self._separators_by_exchange[exchange] = known
        return known

    def begin_identifying(
        self, order: SignedOrder, exchange: Address, settle: SettleIdentity
    ) -> None:
        """Try the profile that the order's signer used last, without a coroutine."""
        accepted = self.separators(exchange)
        profile: int | None
        if order.v2 is None:
            profile = self._v1_profile_by_signer.get(order.signer)
        elif order.signature_type is _CONTRACT:
            settle(None)
            return
        else:
            profile = self._v2_profile_by_signer.get(order.signer)
        if profile is None:
            profile = accepted.first_of_version(order.struct_version)
            if profile is None:
                settle(None)
                return
        digest = accepted.digest(order, profile)
        self._recover(
            digest,
            order.signature,
            partial(self._identified, order.signer, profile, digest, settle),
        )

    def _identified(
        self,
        signer: Address,
        profile: int,
        digest: bytes,
        settle: SettleIdentity,
        recovered: Address | ForetellError,
    ) -> None:
        if recovered == signer:
            settle(Identity(profile, word_of(digest)))
        else:
            settle(recovered if isinstance(recovered, ForetellError) else None)

    async def identify(self, order: SignedOrder, exchange: Address) -> Identity:
        """Return the profile and the id of an order, or refuse one that its signer did not sign.

        An order does not name its profile, so each profile of its struct is tried. The one that the
        signer used last is tried first, so that most orders cost one recovery. The signature of a
        contract wallet names its domain.
        """
        accepted = self.separators(exchange)
        profiles = self._profiles(accepted, order, exchange)
        if order.signature_type is _CONTRACT:
            return await self._identify_wallet(order, exchange, profiles)
        is_v1 = order.v2 is None
        last_profiles = self._v1_profile_by_signer if is_v1 else self._v2_profile_by_signer
        last = last_profiles.get(order.signer)
        first = profiles[0] if last is None else last
        for profile in (first, *(each for each in profiles if each != first)):
            digest = accepted.digest(order, profile)
            if await self._recovered(digest, order.signature) == order.signer:
                if profile != last:
                    last_profiles.put(order.signer, profile)
                return Identity(profile, word_of(digest))
        raise await self._explained(order, exchange, profiles)

    async def _explained(
        self, order: SignedOrder, exchange: Address, profiles: Sequence[int]
    ) -> SignerMismatch:
        """Return the refusal of a signature, with the known domain that it fits, if there is one."""
        accepted = self.separators(exchange)
        struct_hash = accepted.struct_hash(order)
        for domain in self._known_domains(exchange, order.struct_version):
            digest = typed_digest(domain.separator, struct_hash)
            if await self._recovered(digest, order.signature) == order.signer:
                return SignerMismatch(
                    order.signer, f"it fits the domain {domain.text()}", domain.record()
                )
        for profile in profiles:
            digest = personal_digest(accepted.digest(order, profile))
            if await self._recovered(digest, order.signature) == order.signer:
                fits = (
                    "it was made over the digest as a personal message, and must be over the digest"
                )
                return SignerMismatch(order.signer, fits)
        return SignerMismatch(order.signer)

    def _known_domains(self, exchange: Address, version: int) -> Sequence[KnownDomain]:
        key = (exchange, version)
        known = self._domains_by_exchange.get(key)
        if known is None:
            profiles = {each: self.profiles_of(each) for each in (exchange, *self._exchanges)}
            known = known_domains(profiles, exchange, self._chain_id, version)
            self._domains_by_exchange[key] = known
        return known

    async def _identify_wallet(
        self, order: SignedOrder, exchange: Address, profiles: Sequence[int]
    ) -> Identity:
        """Return the identity of a contract wallet's order that the wallet's owner signed."""
        accepted, signature = self.separators(exchange), order.signature
        separator, contents = named_separator(signature), named_contents(signature)
        for profile in profiles:
            if accepted.by_profile[profile] == separator:
                break
        else:
            raise self._foreign(exchange, separator)
        struct_hash = accepted.structs[profile].hash(order)
        if contents != struct_hash:
            raise ContentsMismatch(word_of(contents), word_of(struct_hash))
        signed = wallet_digest(separator, struct_hash, order.maker, self._chain_id)
        digest, inner = accepted.digest(order, profile), owner_signature(signature)
        if await self._recovered(signed, inner) == order.signer:
            return Identity(profile, word_of(digest))
        if await self._recovered(digest, inner) == order.signer:
            fits = "its owner signed the order itself, and must sign it in a TypedDataSign of the wallet"
            raise SignerMismatch(order.signer, fits)
        for chain_id in CHAIN_IDS:
            signed = wallet_digest(separator, struct_hash, order.maker, chain_id)
            if await self._recovered(signed, inner) == order.signer:
                fits = f"its TypedDataSign has chain {chain_id}, and must have {self._chain_id}"
                raise SignerMismatch(order.signer, fits)
        raise SignerMismatch(order.signer)

    def _foreign(self, exchange: Address, separator: bytes) -> ForeignSeparator:
        """Return the refusal of a domain separator, with the domain if it is known."""
        for version in (2, 1):
            for domain in self._known_domains(exchange, version):
                if domain.separator == separator:
                    fits = f"it is that of {domain.text()}"
                    return ForeignSeparator(word_of(separator), fits, domain.record())
        return ForeignSeparator(word_of(separator))

    def recover_under(self, order: SignedOrder, accepted: Separators, profile: int) -> Address:
        """Return the address whose key made the signature, if it is for this profile; for a dry run alone.

        It is computed here and now. Raises MalformedSignature when there can be none.
        """
        digest = accepted.digest(order, profile)
        if order.signature_type is _CONTRACT:
            digest = wallet_digest(
                accepted.by_profile[profile],
                accepted.structs[profile].hash(order),
                order.maker,
                self._chain_id,
            )
        return recover_signer(digest, order.signature[:SIGNATURE_BYTES])

    def _profiles(
        self, accepted: Separators, order: SignedOrder, exchange: Address
    ) -> Sequence[int]:
        """Return the profiles of the order's version, or refuse a version that has none."""
        found = accepted.by_version.get(order.struct_version)
        if found is None:
            raise OrderVersionMismatch(
                order.struct_version, tuple(accepted.by_version), self.domains(exchange)
            )
        return found

    def domains(self, exchange: Address) -> list[dict[str, object]]:
        """Return the domains that orders for an exchange may be signed for, as clients read them."""
        return [
            {
                "structVersion": profile.struct_version,
                "name": profile.name,
                "version": profile.version,
                "chainId": self._chain_id,
                "verifyingContract": checksum_address(profile.verifying_contract or exchange),
            }
            for profile in self.profiles_of(exchange)
        ]

    async def _recovered(self, digest: bytes, signature: bytes) -> Address:
        """Return the signer of a digest, or raise the refusal."""
        settled: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
        self._recover(digest, signature, partial(resolve_signer, settled))
        return await settled


def resolve_signer(settled: asyncio.Future[Address], recovered: Address | ForetellError) -> None:
    """Give a caller that still waits the signer, or the refusal."""
    if settled.done():
        return
    if isinstance(recovered, ForetellError):
        settled.set_exception(recovered)
    else:
        settled.set_result(recovered)
