"""Who signed an order, and what its id is by that."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from foretell.domain.errors.exchange import SignerMismatch
from foretell.domain.exchange.order import SignedOrder
from foretell.domain.exchange.profiles import Separators, SigningProfile, separators
from foretell.domain.values.hexadecimal import Address, Bytes32, word_of
from foretell.runtime.lru import LruCache

SIGNERS_KEPT_MAX: Final = 20_000

Recover = Callable[[bytes, bytes], Awaitable[Address]]
"""Returns who signed a digest with a normalized signature, or raises MalformedSignature.

The dearest step of all, so it is done beside the event loop.
"""


class Identity(NamedTuple):
    """Under which profile an order was signed, and the id that it has by that."""

    profile: int
    order_id: Bytes32


class Signers:
    """Knows signers by their signatures; remembers which profile each used last."""

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
        """Return the domains that orders for an exchange may be signed for."""
        known = self._separators_by_exchange.get(exchange)
        if known is None:
            known = separators(self.profiles_of(exchange), self._chain_id, exchange)
            self._separators_by_exchange[exchange] = known
        return known

    async def identify(self, order: SignedOrder, exchange: Address) -> Identity:
        """Return what the signature makes of the order, or refuse one that is not its signer's.

        A client does not say which profile it uses, so each is tried; the one that the signer used
        last first, so that most orders cost one recovery.
        """
        accepted = self.separators(exchange)
        first = self._profile_by_signer.get(order.signer) or 0
        others = (index for index in range(len(accepted.by_profile)) if index != first)
        for profile in (first, *others):
            digest = accepted.digest(order, profile)
            if await self._recover(digest, order.signature) == order.signer:
                self._profile_by_signer.put(order.signer, profile)
                return Identity(profile, word_of(digest))
        raise SignerMismatch(order.signer)
