"""A dry run of an order: every rule with its verdict, what was signed, and how to cure it.

Nothing changes and nothing is kept. The rules are those of placing, in the same order; a rule that
cannot be judged because an earlier one failed has no verdict. What a wallet has is told to its own
signer alone, so funds and book of an order that somebody else would pay for are not judged either.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from foretell.domain.errors.exchange import (
    FillAndKillUnmatched,
    FillOrKillUnfilled,
    InsufficientAllowance,
    InsufficientBalance,
    InvalidExpiration,
    InvalidFeeRate,
    MalformedOrder,
    MarketClosed,
    OrderCanceledOnChain,
    OrderDuplicated,
    OrderPlacedBefore,
    PostOnlyWouldCross,
    PriceOffTick,
    ReservedByOpenOrders,
    SignerMismatch,
    SizeBelowMinimum,
    UnknownMarket,
)
from foretell.domain.errors.families import ForetellError, MalformedSignature
from foretell.domain.errors.order import (
    InvalidOrderNonce,
    OrderVersionMismatch,
    OwnerMismatch,
    PrivateOrder,
    SignerNotCaller,
    UnsupportedSignatureType,
    WrongWallet,
)
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.order import (
    OrderTerms,
    Side,
    SignedOrder,
    check_expiration,
    check_order,
)
from foretell.domain.values.eip712 import recover_signer
from foretell.domain.values.hexadecimal import Bytes32, checksum_address, word_of
from foretell.edge.auth import L2Caller
from foretell.engine.protocol.requests import CheckOrderReply, CheckOrderRequest
from foretell.trading.accounts.accounts import BalanceRecord
from foretell.trading.books.books import TokenRef
from foretell.trading.context import TradingContext
from foretell.trading.handlers.balances import balance
from foretell.trading.refusals import trading_body
from foretell.trading.wire.order_body import PlacingBody, parse_placing, signed_order

CURES: Final[Mapping[type[ForetellError], str]] = MappingProxyType(
    {
        MalformedOrder: "send the order as docs/reference/trading-api.md shows it",
        OrderVersionMismatch: "sign version 1 of the order struct",
        OwnerMismatch: "put the id of the API key that signs the request into owner",
        SignerNotCaller: "sign with the wallet that the API key belongs to",
        UnsupportedSignatureType: "use signatureType 0 for a wallet of your own key,"
        " or 2 for the Safe that the factory makes for it",
        WrongWallet: "ask GET /auth/account for the maker of each signatureType",
        PrivateOrder: "put the zero address into taker",
        UnknownMarket: "use a token id that GET /markets lists",
        MarketClosed: "choose another market: this one trades no more",
        PriceOffTick: "choose a price that is a multiple of GET /tick-size, and compute the"
        " amounts from it without rounding",
        SizeBelowMinimum: "ask for at least the minimum of the market",
        InvalidFeeRate: "put the base_fee of GET /fee-rate into feeRateBps",
        InvalidExpiration: "give GTD orders an expiration more than a minute ahead, and others 0",
        InvalidOrderNonce: "ask GET /auth/account for the maker's nonce",
        MalformedSignature: "send 65 bytes r, s, v with the lower s",
        SignerMismatch: "sign one of the domains that GET /auth/account lists, with the key"
        " of the signer",
        InsufficientBalance: "fund the maker's wallet, or ask for less",
        InsufficientAllowance: "let the exchange move the asset, by approve or setApprovalForAll",
        ReservedByOpenOrders: "cancel an open order, or ask for less",
        OrderDuplicated: "use another salt",
        OrderCanceledOnChain: "use another salt",
        OrderPlacedBefore: "use another salt",
        PostOnlyWouldCross: "choose a price that does not meet the book",
        FillOrKillUnfilled: "ask for less, or take a worse price, or use FAK",
        FillAndKillUnmatched: "take a worse price, or let the order rest as GTC",
    }
)


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True, rename={"passed": "pass"}):
    """What became of one rule; `pass` is null when it was not judged."""

    rule: str
    passed: bool | None
    error: str | None = None
    code: str | None = None
    message: str | None = None
    details: Mapping[str, Any] | None = None
    cure: str | None = None


class SignedAs(msgspec.Struct, frozen=True):
    """What the signature says under one of the domains that are served."""

    name: str
    version: str
    verifying_contract: str = msgspec.field(name="verifyingContract")
    order_hash: Bytes32 = msgspec.field(name="orderHash")
    recovered: str | None
    matches: bool


class Validation(msgspec.Struct, frozen=True):
    """The whole verdict; `cure` is that of the first rule that failed."""

    valid: bool
    cure: str | None
    rules: Sequence[Verdict]
    order_hash: Bytes32 | None = msgspec.field(name="orderHash")
    struct_hash: Bytes32 | None = msgspec.field(name="structHash")
    expected: str | None
    signed_as: Sequence[SignedAs] = msgspec.field(name="signedAs")
    funds: BalanceRecord | None


class _Trial:
    """One order on its way through the rules, with what is known of it so far."""

    def __init__(self, context: TradingContext, caller: L2Caller) -> None:
        self.context = context
        self.caller = caller
        self.verdicts: list[Verdict] = []
        self.body: PlacingBody | None = None
        self.order: SignedOrder | None = None
        self.place: TokenRef | None = None
        self.order_id: Bytes32 | None = None
        self.terms: OrderTerms | None = None

    @property
    def is_own(self) -> bool:
        """Whether the caller's own wallet would pay."""
        wallets = self.context.wallets.of(self.caller.address)
        return self.order is not None and self.order.maker in wallets

    def struct_hash(self) -> Bytes32:
        """Return the struct hash of the order under its profile, or under the first one."""
        assert self.order is not None
        assert self.place is not None
        separators = self.context.signers.separators(self.place.market.opened.exchange)
        return word_of(separators.struct_hash(self.order))

    async def judge(
        self, rule: str, check: Callable[[], Awaitable[None] | None], *, when: bool
    ) -> None:
        """Write down what a rule says, if it can say anything."""
        if not when:
            self.verdicts.append(Verdict(rule, None))
            return
        try:
            waits = check()
            if waits is not None:
                await waits
        except ForetellError as refusal:
            self.verdicts.append(_failed(rule, refusal))
        else:
            self.verdicts.append(Verdict(rule, passed=True))

    def read(self, raw: bytes) -> None:
        self.body = parse_placing(raw)

    def check_owner(self) -> None:
        assert self.body is not None
        if self.body.owner != self.caller.key_id:
            raise OwnerMismatch(self.body.owner)

    def read_fields(self) -> None:
        assert self.body is not None
        self.order = signed_order(self.body.order)

    def check_signer(self) -> None:
        assert self.order is not None
        if self.order.signer != self.caller.address:
            raise SignerNotCaller(self.order.signer, self.caller.address)

    def check_maker(self) -> None:
        assert self.order is not None
        self.context.wallets.check_maker(self.order)

    def find_market(self) -> None:
        assert self.order is not None
        self.place = self.context.books.find(self.order.token_id)
        self.context.books.find_open(self.order.token_id)

    async def check_signature(self) -> None:
        assert self.order is not None
        assert self.place is not None
        exchange = self.place.market.opened.exchange
        profile, self.order_id = await self.context.signers.identify(self.order, exchange)
        self.order = msgspec.structs.replace(self.order, profile=profile)

    def check_terms(self) -> None:
        assert self.order is not None
        assert self.place is not None
        assert self.body is not None
        rules = self.place.market.rules
        order_id = self.order_id or self.struct_hash()
        self.terms = check_order(self.order, self.body.order_type, rules, order_id)

    def check_expiration(self) -> None:
        assert self.order is not None
        check_expiration(self.order, self.context.now_ms() // 1000)

    async def check_nonce(self) -> None:
        assert self.order is not None
        assert self.place is not None
        await self.context.nonces.check(self.place.market.opened.exchange, self.order)

    async def check_engine(self) -> None:
        assert self.order is not None
        assert self.place is not None
        assert self.body is not None
        assert self.terms is not None
        command = PlaceOrder(
            at_ms=self.context.now_ms(),
            order_id=self.order_id or self.struct_hash(),
            order=self.order,
            order_type=self.body.order_type,
            is_post_only=self.body.post_only,
            owner=self.caller.key_id,
            condition_id=self.place.market.condition_id,
            is_yes=self.place.is_yes,
            terms=self.terms,
        )
        await self.context.shards.ask(
            command.condition_id, CheckOrderRequest(command), CheckOrderReply
        )


async def validate_order(context: TradingContext, caller: L2Caller, raw: bytes) -> Validation:
    """Return what every rule says of the order in the body."""
    trial = _Trial(context, caller)
    await trial.judge("body", lambda: trial.read(raw), when=True)
    await trial.judge("owner", trial.check_owner, when=trial.body is not None)
    await trial.judge("fields", trial.read_fields, when=trial.body is not None)
    has_order = trial.order is not None
    await trial.judge("signer", trial.check_signer, when=has_order)
    await trial.judge("maker", trial.check_maker, when=has_order)
    await trial.judge("market", trial.find_market, when=has_order)
    has_market = trial.place is not None
    await trial.judge("signature", trial.check_signature, when=has_market)
    await trial.judge("terms", trial.check_terms, when=has_market)
    await trial.judge("expiration", trial.check_expiration, when=has_order)
    await trial.judge("nonce", trial.check_nonce, when=has_market)
    may_judge = trial.terms is not None and trial.is_own
    await trial.judge("funds and book", trial.check_engine, when=may_judge)
    return _validation(trial, await _funds(trial))


def _validation(trial: _Trial, funds: BalanceRecord | None) -> Validation:
    failed = [verdict for verdict in trial.verdicts if verdict.passed is False]
    order = trial.order
    return Validation(
        valid=not failed,
        cure=failed[0].cure if failed else None,
        rules=trial.verdicts,
        order_hash=trial.order_id,
        struct_hash=trial.struct_hash() if order and trial.place else None,
        expected=checksum_address(order.signer) if order else None,
        signed_as=_signed_as(trial),
        funds=funds,
    )


def _signed_as(trial: _Trial) -> list[SignedAs]:
    """Return what the signature says under every domain, the signer's or not."""
    order, place, context = trial.order, trial.place, trial.context
    if order is None or place is None:
        return []
    exchange = place.market.opened.exchange
    separators = context.signers.separators(exchange)
    answers = []
    for index, profile in enumerate(context.signers.profiles_of(exchange)):
        digest = separators.digest(order, index)
        try:
            recovered = recover_signer(digest, order.signature)
        except MalformedSignature:
            recovered = None
        answers.append(
            SignedAs(
                name=profile.name,
                version=profile.version,
                verifying_contract=checksum_address(profile.verifying_contract or exchange),
                order_hash=word_of(digest),
                recovered=None if recovered is None else checksum_address(recovered),
                matches=recovered == order.signer,
            )
        )
    return answers


async def _funds(trial: _Trial) -> BalanceRecord | None:
    """Return what the maker has of what it would give; told to the maker's own signer alone."""
    order, place, context = trial.order, trial.place, trial.context
    if order is None or place is None or not trial.is_own:
        return None
    return await balance(context, order.maker, None if order.side is Side.BUY else place)


def _failed(rule: str, refusal: ForetellError) -> Verdict:
    _, body = trading_body(refusal)
    assert isinstance(body, dict)
    return Verdict(
        rule=rule,
        passed=False,
        error=body["error"],
        code=refusal.code,
        message=refusal.message,
        details=refusal.details or None,
        cure=_cure(refusal),
    )


def _cure(refusal: ForetellError) -> str | None:
    return next((CURES[kind] for kind in type(refusal).__mro__ if kind in CURES), None)
