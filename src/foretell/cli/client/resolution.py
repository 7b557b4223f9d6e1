"""`foretell market resolve`, `dispute` and `withdraw`: answer the question of a market."""

from typing import Annotated, Final, NamedTuple

import typer

from foretell.cli.client.market import MarketName
from foretell.cli.client.options import ClientOptions
from foretell.cli.client.output import print_fields, print_rows, report
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.command import (
    ArbiterDecides,
    MarketUnknown,
    OtherAnswer,
    QuestionAskedAgain,
)
from foretell.domain.values.amounts import decimal_text
from foretell.domain.values.instants import iso_time
from foretell.sdk.chain import TxReceipt
from foretell.sdk.client import Foretell
from foretell.sdk.oracles.optimistic import OptimisticResolver, RequestState
from foretell.sdk.oracles.questions import fetch_question
from foretell.sdk.oracles.resolution import DIRECT
from foretell.sdk.portfolio import ListedMarket

HALF: Final = "half"
EARLY: Final = "early"
MS_PER_S: Final = 1_000


class ResolutionStep(NamedTuple):
    """A transaction of a resolution."""

    market: str
    act: str
    receipt: TxReceipt

    def row(self) -> dict[str, str]:
        """Return the row of the output."""
        return {"market": self.market, "step": self.act, "transaction": str(self.receipt.tx_hash)}


async def resolve(
    options: ClientOptions,
    name: MarketName,
    answer: Annotated[
        str, typer.Argument(help="The outcome that is true, or `half` for one half to each.")
    ],
    *,
    waits: Annotated[
        bool,
        typer.Option("--wait", help="Wait for the end of the liveness, and report the answer."),
    ] = False,
) -> None:
    """Answer a market's question.

    In a market of the stack `dro_moov2`, a proposer of its creator's whitelist answers, finally. In one
    of `alt_moov2` anyone proposes the answer with a bond; once its liveness has ended without a dispute,
    the same command reports it. The command may be interrupted, and run again: it continues.

    In an event of which exactly one market is true, the others close as No with it. A market that is
    resolved already stays as it is.
    """
    async with options.foretell(AccountRole.PROPOSER) as foretell:
        found = await foretell.apis.discovery.market(name)
        if found.is_closed:
            report(f"{found.slug} is resolved already")
            return
        key = _answer_key(found, answer)
        question = await fetch_question(foretell.chain, foretell.contracts, found.row)
        if question.stack_name == DIRECT:
            steps = [
                ResolutionStep(
                    found.slug, "resolve", await foretell.resolver().resolve(found.row, key)
                )
            ]
            final: str | None = key
        else:
            now_s = await foretell.apis.markets.server_time()
            optimistic = _Optimistic(foretell.optimistic(), found, key)
            final = await optimistic.go_on(now_s if waits else None)
            steps = optimistic.steps
        if final == "first" and found.is_neg_risk:
            steps += await _close_others(foretell, found)
    print_rows([step.row() for step in steps], is_json=options.is_json)


def _answer_key(found: ListedMarket, answer: str) -> str:
    """Return `first`, `second` or `half` for an outcome that is named in any case."""
    names = [each.casefold() for each in found.outcomes]
    if answer.casefold() in names:
        return ("first", "second")[names.index(answer.casefold())]
    if answer.casefold() != HALF:
        raise MarketUnknown(f"{found.slug} has no outcome {answer}: {', '.join(found.outcomes)}")
    return HALF


def _outcome(found: ListedMarket, key: str | None) -> str:
    """Return the outcome of a key, as people name it."""
    words = {"first": found.outcomes[0], "second": found.outcomes[1], HALF: HALF}
    return words.get(key or "", "that it is too early")


class _Optimistic:
    """One market of the optimistic stack on its way to an answer."""

    def __init__(self, resolver: OptimisticResolver, found: ListedMarket, key: str) -> None:
        self._resolver = resolver
        self._found = found
        self._key = key
        self.steps: list[ResolutionStep] = []

    async def go_on(self, now_s: int | None) -> str | None:
        """Do what the question's state allows, and return the answer that was reported, as a key.

        None if none was: it may still be disputed, or it was too early and the question is asked again.
        With the time, it waits for the end of the liveness.
        """
        row, slug = self._found.row, self._found.slug
        standing = await self._resolver.standing(row)
        if standing.state is RequestState.REQUESTED:
            self._note("propose", await self._resolver.propose(row, self._key))
            standing = await self._resolver.standing(row)
        if standing.state is RequestState.PROPOSED:
            if standing.answer != self._key:
                raise OtherAnswer(slug, _outcome(self._found, standing.answer))
            report(
                f"{_outcome(self._found, self._key)} is proposed with {decimal_text(standing.bond_units)}"
                f" at stake; it stands at {iso_time(standing.expires_at_s * MS_PER_S)} unless it is disputed"
            )
            if now_s is None:
                return None
            standing = await self._resolver.wait_until_answered(row, now_s)
        if standing.state is RequestState.REQUESTED:
            raise QuestionAskedAgain(slug)
        if not standing.is_answered:
            raise ArbiterDecides(slug)
        report(f"the answer is {_outcome(self._found, standing.answer)}")
        for receipt in await self._resolver.report(row):
            self._note("report", receipt)
        return standing.answer

    def _note(self, act: str, receipt: TxReceipt) -> None:
        self.steps.append(ResolutionStep(self._found.slug, act, receipt))


async def _close_others(foretell: Foretell, found: ListedMarket) -> list[ResolutionStep]:
    event = await foretell.apis.discovery.event(found.row["events"][0]["slug"])
    others = [row for row in event["markets"] if row["slug"] != found.slug and not row["closed"]]
    receipts = await foretell.resolver().close_others(others)
    return [
        ResolutionStep(row["slug"], "close", each)
        for row, each in zip(others, receipts, strict=True)
    ]


async def dispute(options: ClientOptions, name: MarketName) -> None:
    """Dispute the proposed answer of a market of the stack `alt_moov2`, with a bond.

    After a first dispute the question is asked again; after a second one the arbiter decides.
    """
    async with options.foretell() as foretell:
        found = await foretell.apis.discovery.market(name)
        resolver = foretell.optimistic()
        standing = await resolver.standing(found.row)
        receipt = await resolver.dispute(found.row)
    fields = {
        "market": found.slug,
        "disputed": _outcome(found, standing.answer),
        "bond": decimal_text(standing.bond_units),
        "asked at": standing.asked_at_s,
        "transaction": str(receipt.tx_hash),
    }
    print_fields(fields, is_json=options.is_json)


async def arbitrate(
    options: ClientOptions,
    name: MarketName,
    decision: Annotated[
        str,
        typer.Argument(
            help="The outcome that is true, `half`, or `early`: the question is asked again."
        ),
    ],
) -> None:
    """Decide a question that was disputed twice, as the arbiter of the optimistic oracle.

    It is final. `market resolve` then reports it to the market, and the bonds can be withdrawn.
    """
    async with options.foretell(AccountRole.ADMIN) as foretell:
        found = await foretell.apis.discovery.market(name)
        outcomes = [each.casefold() for each in found.outcomes]
        is_early = decision.casefold() == EARLY and EARLY not in outcomes
        key = EARLY if is_early else _answer_key(found, decision)
        receipt = await foretell.optimistic().arbitrate(found.row, key)
    fields = {
        "market": found.slug,
        "decided": _outcome(found, key),
        "transaction": str(receipt.tx_hash),
    }
    print_fields(fields, is_json=options.is_json)


async def withdraw(
    options: ClientOptions,
    name: MarketName,
    asked_at: Annotated[
        int | None,
        typer.Option(
            help="The time of a disputed question, to pay out its bonds first.",
            show_default="found in the oracle's logs",
        ),
    ] = None,
) -> None:
    """Withdraw the bonds and rewards that the account is owed by the optimistic oracle."""
    async with options.foretell(AccountRole.PROPOSER) as foretell:
        found = await foretell.apis.discovery.market(name)
        units = await foretell.optimistic().withdraw(found.row, asked_at)
    print_fields({"withdrawn": decimal_text(units)}, is_json=options.is_json)
