"""A dry run of an order: the result of every rule, the recovered signers, and a remedy.

Nothing is placed or stored. A rule that cannot be checked because an earlier one failed has no
verdict. Funds are shown only to the signer that owns them, so for an order that another wallet
would pay for, funds and book are not checked either.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from foretell.domain.errors.families import ForetellError, MalformedSignature
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import Bytes32, checksum_address, word_of
from foretell.edge.auth import L2Caller
from foretell.trading.accounts.accounts import BalanceRecord
from foretell.trading.context import TradingContext
from foretell.trading.handlers.history import balance
from foretell.trading.handlers.order_rules import ORDER_RULES, OrderCheck, Rule
from foretell.trading.refusals import trading_body


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True, rename={"passed": "pass"}):
    """The outcome of one rule; `pass` is null when the rule was not checked."""

    rule: str
    passed: bool | None
    error: str | None = None
    code: str | None = None
    message: str | None = None
    details: Mapping[str, Any] | None = None
    cure: str | None = None


class SignedAs(msgspec.Struct, frozen=True):
    """The signer and the order hash that the signature gives under one of the served domains."""

    name: str
    version: str
    verifying_contract: str = msgspec.field(name="verifyingContract")
    order_hash: Bytes32 = msgspec.field(name="orderHash")
    recovered: str | None
    matches: bool


class Validation(msgspec.Struct, frozen=True):
    """The verdicts; `cure` is that of the first rule that failed."""

    valid: bool
    cure: str | None
    rules: Sequence[Verdict]
    order_hash: Bytes32 | None = msgspec.field(name="orderHash")
    struct_hash: Bytes32 | None = msgspec.field(name="structHash")
    expected: str | None
    signed_as: Sequence[SignedAs] = msgspec.field(name="signedAs")
    funds: BalanceRecord | None


async def validate_order(context: TradingContext, caller: L2Caller, raw: bytes) -> Validation:
    """Return a verdict of every rule on the order in the body."""
    check = OrderCheck(context, caller, raw, is_dry_run=True)
    verdicts = [await _verdict(rule, check) for rule in ORDER_RULES]
    failed = [verdict for verdict in verdicts if verdict.passed is False]
    order = check.order
    return Validation(
        valid=not failed,
        cure=failed[0].cure if failed else None,
        rules=verdicts,
        order_hash=check.order_id,
        struct_hash=check.struct_hash() if order and check.token else None,
        expected=checksum_address(order.signer) if order else None,
        signed_as=_signed_as(check),
        funds=await _funds(check),
    )


async def _verdict(rule: Rule, check: OrderCheck) -> Verdict:
    if not rule.needs(check):
        return Verdict(rule.name, None)
    try:
        pending = rule.check(check)
        if pending is not None:
            await pending
    except ForetellError as refusal:
        return _failed(rule.name, refusal)
    return Verdict(rule.name, passed=True)


def _signed_as(check: OrderCheck) -> list[SignedAs]:
    """Return what the signature gives under every domain, whether the signer used it or not."""
    order, token, context = check.order, check.token, check.context
    if order is None or token is None:
        return []
    exchange = token.market.opened.exchange
    separators = context.signers.separators(exchange)
    answers = []
    for index, profile in enumerate(context.signers.profiles_of(exchange)):
        if profile.struct_version != order.struct_version:
            continue
        digest = separators.digest(order, index)
        try:
            recovered = context.signers.recover_under(order, separators, index)
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


async def _funds(check: OrderCheck) -> BalanceRecord | None:
    """Return the maker's balance of the asset that the order gives, if the caller may see it."""
    order, token = check.order, check.token
    if order is None or token is None or not check.is_own():
        return None
    asked, account = None if order.side is Side.BUY else token, check.caller.address
    return await balance(check.context, order.maker, asked, account=account)


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
        cure=refusal.cure,
    )
