"""Recovery of an order's signer, which gives its signing profile and its id."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from foretell.domain.errors.exchange import SignerMismatch
from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.order import SignedOrder
from foretell.domain.exchange.profiles import Separators, SigningProfile, separators
from foretell.domain.values.hexadecimal import Address, Bytes32, word_of
from foretell.runtime.lru import LruCache

SIGNERS_KEPT_MAX: Final = 20_000

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
        kept_max: int = SIGNERS_KEPT_MAX,
    ) -> None:
        self.profiles_of = profiles_of
        self._chain_id = chain_id
        self._recover = recover
        self._separators_by_exchange: dict[Address, Separators] = {}
        self._profile_by_signer: LruCache[Address, int] = LruCache(kept_max)

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
        profile = self._profile_by_signer.get(order.signer) or 0
        digest = self.separators(exchange).digest(order, profile)
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

        An order does not name its profile, so each profile is tried. The one that the signer used
        last is tried first, so that most orders cost one recovery.
        """
        accepted = self.separators(exchange)
        last = self._profile_by_signer.get(order.signer)
        first = last or 0
        for profile in (first, *range(first), *range(first + 1, len(accepted.by_profile))):
            digest = accepted.digest(order, profile)
            if await self._recovered(digest, order.signature) == order.signer:
                if profile != last:
                    self._profile_by_signer.put(order.signer, profile)
                return Identity(profile, word_of(digest))
        raise SignerMismatch(order.signer)

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
