"""Rules that an order must pass, in the order in which they are checked.

Placing stops at the first refusal; the dry run reports a verdict on every rule. Cheap rules come
first: recovering the signer costs more than all others together.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.order import OwnerMismatch, SignerNotCaller
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.order import (
    OrderTerms,
    SignedOrder,
    check_expiration,
    order_terms,
)
from foretell.domain.values.hexadecimal import Bytes32, word_of
from foretell.edge.auth import L2Caller
from foretell.engine.protocol.requests import (
    CheckOrderReply,
    CheckOrderRequest,
    FindPlacementReply,
    FindPlacementRequest,
)
from foretell.store.public_reads.places import client_name
from foretell.trading.accounts.signers import Identity
from foretell.trading.books.books import TokenRef
from foretell.trading.context import TradingContext
from foretell.trading.wire.order_body import PlacingBody, PlacingV2Body, parse_placing, signed_order


class OrderCheck:
    """One order, and the parts that the rules have found so far; unknown parts are None."""

    __slots__ = (
        "body",
        "builder",
        "caller",
        "client",
        "context",
        "is_dry_run",
        "order",
        "order_id",
        "raw",
        "terms",
        "token",
    )

    def __init__(
        self,
        context: TradingContext,
        caller: L2Caller,
        raw: bytes | msgspec.Raw,
        *,
        builder: Bytes32 | None = None,
        is_dry_run: bool = False,
        client: str | None = None,
    ) -> None:
        self.context = context
        self.caller = caller
        self.raw = raw
        self.builder = builder
        self.is_dry_run = is_dry_run
        self.client = client_name.get() if client is None else client
        self.body: PlacingBody | PlacingV2Body | None = None
        self.order: SignedOrder | None = None
        self.token: TokenRef | None = None
        self.order_id: Bytes32 | None = None
        self.terms: OrderTerms | None = None

    def parse_body(self) -> None:
        """Parse the body."""
        self.body = parse_placing(self.raw)

    def check_owner(self) -> None:
        """Refuse an order that another API key owns."""
        assert self.body is not None
        if self.body.owner != self.caller.key_id:
            raise OwnerMismatch(self.body.owner)

    def parse_fields(self) -> None:
        """Parse the fields of the order."""
        assert self.body is not None
        self.order = signed_order(self.body.order, self.caller.address)

    def check_signer(self) -> None:
        """Refuse an order of another address."""
        assert self.order is not None
        if self.order.signer != self.caller.address:
            raise SignerNotCaller(self.order.signer, self.caller.address)

    def check_maker(self) -> None:
        """Refuse an order that a wallet of another address would pay for."""
        assert self.order is not None
        self.context.wallets.check_maker(self.order)

    def find_market(self) -> None:
        """Find the market of the order's token.

        An order of a market that is over may have been placed before, so for placing it is the
        engine that refuses it.
        """
        assert self.order is not None
        self.token = self.context.books.find(self.order.token_id)
        if self.is_dry_run:
            self.context.books.find_open(self.order.token_id)

    async def identify(self) -> None:
        """Recover the signer, which gives the order's signing profile and its id."""
        assert self.order is not None
        assert self.token is not None
        exchange = self.token.market.opened.exchange
        self.accept(await self.context.signers.identify(self.order, exchange))

    def accept(self, identity: Identity) -> None:
        """Take the profile and the id that the order's signer gave it."""
        assert self.order is not None
        profile, self.order_id = identity
        if profile != self.order.profile:
            self.order = msgspec.structs.replace(self.order, profile=profile)

    def find_terms(self) -> None:
        """Find the order's limit and size in its market."""
        assert self.body is not None
        assert self.order is not None
        assert self.token is not None
        rules = self.token.market.rules
        self.terms = order_terms(self.order, self.body.order_type, rules, self._id_or_hash())

    def check_expiration(self) -> None:
        """Refuse an order that expires too soon."""
        assert self.order is not None
        check_expiration(self.order, self.context.now_ms() // 1000)

    def check_nonce(self) -> Coroutine[Any, Any, None] | None:
        """Refuse an order with another nonce than its maker has at the exchange; version 2 has none."""
        assert self.order is not None
        assert self.token is not None
        if self.order.v2 is not None:
            return None
        nonces, exchange = self.context.nonces, self.token.market.opened.exchange
        return None if nonces.is_known(exchange, self.order) else nonces.check(exchange, self.order)

    def check_wallet(self) -> Coroutine[Any, Any, None] | None:
        """Refuse an order that its contract wallet does not let its signer place, by the chain."""
        assert self.order is not None
        if self.order_id is None:
            return None
        return self.context.wallet_checks.pending(self.order, self.order_id)

    def read_wallet(self) -> Coroutine[Any, Any, None] | None:
        """Wait until the maker's funds are known, if this is the first use of the wallet; refuse nothing."""
        assert self.order is not None
        readings, wallet = self.context.wallet_readings, self.order.maker
        return (
            None
            if readings is None or readings.is_known(wallet)
            else readings.wait(wallet, self.client, account=self.caller.address)
        )

    async def check_funds_and_book(self) -> None:
        """Refuse an order that the engine would refuse."""
        if (reading := self.read_wallet()) is not None:
            await reading
        command = self.command()
        await self.context.shards.handle(
            command.condition_id, CheckOrderRequest(command), CheckOrderReply
        )

    def command(self) -> PlaceOrder:
        """Return the command that places the order."""
        assert self.body is not None
        assert self.order is not None
        assert self.token is not None
        assert self.terms is not None
        return PlaceOrder(
            at_ms=self.context.now_ms(),
            order_id=self._id_or_hash(),
            order=self.order,
            order_type=self.body.order_type,
            is_post_only=self.body.post_only,
            owner=self.caller.key_id,
            condition_id=self.token.market.condition_id,
            is_yes=self.token.is_yes,
            terms=self.terms,
            builder=self.builder,
        )

    async def was_placed(self) -> bool:
        """Return whether the engine has accepted this order before."""
        assert self.token is not None
        assert self.order_id is not None
        request = FindPlacementRequest(self.order_id)
        condition_id = self.token.market.condition_id
        found = await self.context.shards.handle(condition_id, request, FindPlacementReply)
        return found.placement is not None

    def has_body(self) -> bool:
        """Return whether the body was parsed."""
        return self.body is not None

    def has_order(self) -> bool:
        """Return whether the fields were parsed."""
        return self.order is not None

    def has_market(self) -> bool:
        """Return whether the order and its market are known."""
        return self.token is not None

    def is_own(self) -> bool:
        """Return whether a wallet of the caller would pay."""
        wallets = self.context.wallets.of(self.caller.address)
        return self.order is not None and self.order.maker in wallets

    def is_priced_and_own(self) -> bool:
        """Return whether the terms are known and the funds are the caller's to see."""
        return self.terms is not None and self.is_own()

    def struct_hash(self) -> Bytes32:
        """Return the struct hash of the order under its profile, or under the first one."""
        assert self.order is not None
        assert self.token is not None
        separators = self.context.signers.separators(self.token.market.opened.exchange)
        return word_of(separators.struct_hash(self.order))

    def _id_or_hash(self) -> Bytes32:
        """Return the order's id; in a dry run, its struct hash if the signature is not valid."""
        return self.order_id or self.struct_hash()


def always(_check: OrderCheck) -> bool:
    """Return True: the rule can always be checked."""
    return True


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, and whether enough is known to check it.

    `spares_repeats` rules do not hold for an order that was placed before: it was valid then, and
    the engine repeats its answer.
    """

    name: str
    check: Callable[[OrderCheck], Coroutine[Any, Any, None] | None]
    needs: Callable[[OrderCheck], bool]
    spares_repeats: bool = False


RULES_BEFORE_SIGNATURE: Final = (
    Rule("body", OrderCheck.parse_body, always),
    Rule("owner", OrderCheck.check_owner, OrderCheck.has_body),
    Rule("fields", OrderCheck.parse_fields, OrderCheck.has_body),
    Rule("signer", OrderCheck.check_signer, OrderCheck.has_order),
    Rule("maker", OrderCheck.check_maker, OrderCheck.has_order),
    Rule("market", OrderCheck.find_market, OrderCheck.has_order),
)
"""Rules that cost less than the signature; none of them waits."""

SIGNATURE_RULE: Final = Rule("signature", OrderCheck.identify, OrderCheck.has_market)

RULES_AFTER_SIGNATURE: Final = (
    Rule("terms", OrderCheck.find_terms, OrderCheck.has_market),
    Rule("expiration", OrderCheck.check_expiration, OrderCheck.has_order, spares_repeats=True),
    Rule("nonce", OrderCheck.check_nonce, OrderCheck.has_market, spares_repeats=True),
    Rule("wallet", OrderCheck.check_wallet, OrderCheck.has_order, spares_repeats=True),
)
"""Rules that placing checks before the engine checks the rest."""

PLACING_RULES: Final = (
    *RULES_AFTER_SIGNATURE,
    Rule("reading", OrderCheck.read_wallet, OrderCheck.has_order),
)
"""What placing waits for after the signature; a dry run reads the wallet when it checks the funds."""

ORDER_RULES: Final = (
    *RULES_BEFORE_SIGNATURE,
    SIGNATURE_RULE,
    *RULES_AFTER_SIGNATURE,
    Rule("funds and book", OrderCheck.check_funds_and_book, OrderCheck.is_priced_and_own),
)


async def prepare_order(check: OrderCheck) -> PlaceOrder:
    """Return the command that places an order, or refuse it for the first rule that it breaks."""
    for rule in RULES_BEFORE_SIGNATURE:
        rule.check(check)
    await check.identify()
    return await prepare_signed_order(check)


async def prepare_signed_order(check: OrderCheck) -> PlaceOrder:
    """Return the command that places an order with a valid signature, or refuse it."""
    for rule in PLACING_RULES:
        try:
            pending = rule.check(check)
            if pending is not None:
                await pending
        except ForetellError:
            if not (rule.spares_repeats and await check.was_placed()):
                raise
            break
    return check.command()
