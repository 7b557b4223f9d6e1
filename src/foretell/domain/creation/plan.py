"""The transaction plan: the calls that a creator must send, and the check that it sent them.

The plan leaves out calls whose effect is on the chain already, so a creator who starts again after
a failed request pays nothing twice. The other items keep their numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from foretell.domain.contracts import neg_risk
from foretell.domain.contracts.calldata import Approve, QuestionTerms, encode_set_metadata
from foretell.domain.creation.payload import MarketDraft, Payload, ancillary_text
from foretell.domain.errors.creation import TxInvalid, TxPending
from foretell.domain.errors.families import FieldProblem, InvalidFields
from foretell.domain.values.amounts import decimal_text
from foretell.domain.values.hexadecimal import (
    Address,
    Bytes32,
    keccak256,
    word_bytes,
    word_of,
)
from foretell.domain.values.tokens import TokenPair, condition_id, token_pair

APPROVE_FEE_ITEM: Final = "approve-direct-resolution-fee"
APPROVE_REWARD_ITEM: Final = "approve-resolution-reward"
PREPARE_EVENT_ITEM: Final = "prepare-neg-risk-market"
SEAL_EVENT_ITEM: Final = "seal-neg-risk-market"
CONVERSION_FEE_BIPS: Final = 0
END_S_MAX: Final = 10 * 365 * 24 * 3600
"""The direct adapter's latest end of a question, after it was asked."""


class EventContracts(NamedTuple):
    """The additional contracts of a neg-risk event."""

    operator: Address
    neg_risk_adapter: Address
    wrapped_collateral: Address


class PlanContracts(NamedTuple):
    """The contracts that a plan calls; `event` is set for neg-risk events only."""

    collateral: Address
    adapter: Address
    market_registry: Address
    event: EventContracts | None = None


@dataclass(frozen=True, slots=True)
class MarketIds:
    """The ids of a market on the chain, which follow from the payload and its creator."""

    key: str
    asked_id: Bytes32
    """The resolution adapter's id of the question; in a neg-risk event `question_id` differs."""
    question_id: Bytes32
    condition_id: Bytes32
    tokens: TokenPair
    neg_risk_market_id: Bytes32 | None = None


def ids_of_markets(payload: Payload, contracts: PlanContracts) -> list[MarketIds]:
    """Return the ids that the markets of a payload get when its creator asks their questions.

    In a neg-risk event they depend on the market's place, so questions are added in order.
    """
    asked_ids = [word_of(_asked_hash(market, payload)) for market in payload.markets]
    if contracts.event is None:
        oracle, collateral, event_id = contracts.adapter, contracts.collateral, None
        question_ids = asked_ids
    else:
        _, oracle, collateral = contracts.event
        event_id = event_market_id(payload, contracts.event)
        question_ids = [neg_risk.question_id(event_id, index) for index in range(len(asked_ids))]
    made = []
    for market, asked_id, question_id in zip(payload.markets, asked_ids, question_ids, strict=True):
        condition = condition_id(oracle, question_id)
        tokens = token_pair(collateral, condition)
        made.append(MarketIds(market.key, asked_id, question_id, condition, tokens, event_id))
    return made


def event_market_id(payload: Payload, contracts: EventContracts) -> Bytes32:
    """Return the id of the neg-risk market that the payload's questions belong to."""
    return neg_risk.market_id(
        contracts.operator, CONVERSION_FEE_BIPS, _event_data(payload), payload.creator
    )


def _event_data(payload: Payload) -> bytes:
    """Return the metadata of an event on the chain; another set of questions is another event."""
    questions = "\n".join(ancillary_text(m, payload.resolution_rules) for m in payload.markets)
    digest = keccak256(questions.encode()).hex()
    return f"title: {payload.title}, slug: {payload.slug}, questions: {digest}".encode()


def _asked_hash(market: MarketDraft, payload: Payload) -> bytes:
    text = _asked_data(market, payload) + f",initializer:{payload.creator[2:]}".encode()
    return keccak256(text)


def _asked_data(market: MarketDraft, payload: Payload) -> bytes:
    return ancillary_text(
        market, payload.resolution_rules, may_be_unknown=not payload.is_neg_risk
    ).encode()


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One call that the creator's wallet makes."""

    item_id: str
    target: Address
    calldata: bytes
    description: str
    market_key: str | None = None
    value_wei: int = 0


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The state of the chain that a plan depends on."""

    fee_units: int
    allowance_units: int
    reward_units: int = 0
    end_s: int = 0
    """The seconds until the payload's end, which a question of the direct stack states."""
    initialized_keys: frozenset[str] = frozenset()
    has_event: bool = False
    prepared_keys: frozenset[str] = frozenset()
    """The keys of markets with a question in the event already."""
    is_sealed: bool = False
    """Whether the event is sealed, or its contracts are of a version that seals none."""


def build_plan(
    payload: Payload, contracts: PlanContracts, facts: PlanFacts
) -> tuple[PlanItem, ...]:
    """Return the calls that the creator has yet to send so that every market exists."""
    questions = tuple(
        PlanItem(
            item_id=f"initialize-market-{number}",
            target=contracts.adapter,
            calldata=QuestionTerms(
                _asked_data(market, payload),
                contracts.collateral,
                facts.reward_units,
                liveness_s=facts.end_s,
            ).encode(),
            description=f"Initialize market {market.slug}",
            market_key=market.key,
        )
        for number, market in enumerate(payload.markets, 1)
        if market.key not in facts.initialized_keys
    )
    event = () if contracts.event is None else tuple(_event_items(payload, contracts.event, facts))
    total_units = plan_cost_units(payload, facts)
    if total_units <= facts.allowance_units:
        return (*questions, *event)
    is_fee = facts.fee_units > 0
    word = "fee" if is_fee else "reward"
    approval = PlanItem(
        item_id=APPROVE_FEE_ITEM if is_fee else APPROVE_REWARD_ITEM,
        target=contracts.collateral,
        calldata=Approve(contracts.adapter, total_units).encode(),
        description=f"Approve the resolution {word} of {decimal_text(total_units)} collateral",
    )
    return (approval, *questions, *event)


def stated_end_s(ends_at_ms: int, now_ms: int) -> int:
    """Return the seconds until an end, rounded up, within what the direct adapter accepts.

    Zero would mean no stated end, so an end that passed while the request waited is a second away.
    """
    return min(max(-(-(ends_at_ms - now_ms) // 1000), 1), END_S_MAX)


def plan_cost_units(payload: Payload, facts: PlanFacts) -> int:
    """Return the collateral that the creator pays: for each question that the chain does not have."""
    missing = [market for market in payload.markets if market.key not in facts.initialized_keys]
    return (facts.fee_units + facts.reward_units) * len(missing)


def _event_items(
    payload: Payload, contracts: EventContracts, facts: PlanFacts
) -> Iterator[PlanItem]:
    """Yield the calls that prepare a neg-risk event: its market, each question in order, and the seal.

    Positions of a sealed event can be converted, because nobody can add a question to it.
    """
    if not facts.has_event:
        yield PlanItem(
            item_id=PREPARE_EVENT_ITEM,
            target=contracts.operator,
            calldata=neg_risk.PREPARE_MARKET.encode(CONVERSION_FEE_BIPS, _event_data(payload)),
            description=f"Prepare event {payload.slug}",
        )
    event_id = word_bytes(event_market_id(payload, contracts))
    for number, market in enumerate(payload.markets, 1):
        if market.key not in facts.prepared_keys:
            yield PlanItem(
                item_id=f"prepare-question-{number}",
                target=contracts.operator,
                calldata=neg_risk.PREPARE_QUESTION.encode(
                    event_id, market.question.encode(), _asked_hash(market, payload)
                ),
                description=f"Add {market.slug} to its event",
                market_key=market.key,
            )
    if not facts.is_sealed:
        yield PlanItem(
            item_id=SEAL_EVENT_ITEM,
            target=contracts.operator,
            calldata=neg_risk.SEAL_MARKET.encode(event_id),
            description=f"Seal event {payload.slug}: no more questions",
        )


@dataclass(frozen=True, slots=True)
class MetadataName:
    """The storage id of a market's metadata, and the id that is set on the chain."""

    market: MarketDraft
    condition_id: Bytes32
    metadata_id: str
    metadata_id_on_chain: str


def build_metadata_plan(
    names: Sequence[MetadataName], contracts: PlanContracts
) -> tuple[PlanItem, ...]:
    """Return the calls that set the metadata of each market with another id on the chain."""
    return tuple(
        PlanItem(
            item_id=f"update-metadata-{number}",
            target=contracts.market_registry,
            calldata=encode_set_metadata(name.condition_id, name.metadata_id),
            description=f"Start market {name.market.slug}",
            market_key=name.market.key,
        )
        for number, name in enumerate(names, 1)
        if name.metadata_id != name.metadata_id_on_chain
    )


class PlanTx(NamedTuple):
    """The transaction hash that a creator sent for an item."""

    item_id: str
    tx_hash: Bytes32


def check_known(txs: Sequence[PlanTx], plan: Sequence[PlanItem]) -> None:
    """Refuse hashes of items that the plan lacks, and two hashes of one item."""
    known = {item.item_id for item in plan}
    problems, seen = [], set[str]()
    for index, tx in enumerate(txs):
        if tx.item_id not in known:
            problems.append(
                FieldProblem(f"txs/{index}/id", "must be the id of an item of the plan")
            )
        if tx.item_id in seen:
            problems.append(FieldProblem(f"txs/{index}/id", "must appear only once"))
        seen.add(tx.item_id)
    if problems:
        raise InvalidFields(problems)


def check_unchanged(txs: Sequence[PlanTx], hash_by_id: Mapping[str, Bytes32]) -> None:
    """Refuse to replace a verified hash."""
    problems = [
        FieldProblem(f"txs/{index}/hash", f"must be {hash_by_id[tx.item_id]}, which was verified")
        for index, tx in enumerate(txs)
        if hash_by_id.get(tx.item_id, tx.tx_hash) != tx.tx_hash
    ]
    if problems:
        raise InvalidFields(problems)


@dataclass(frozen=True, slots=True)
class SeenTx:
    """A transaction on the chain; the last two fields are None while it is in no block."""

    sender: Address
    target: Address | None
    value_wei: int
    calldata: bytes
    is_success: bool | None
    block_number: int | None


def check_txs(
    plan: Sequence[PlanItem],
    hash_by_id: Mapping[str, Bytes32],
    seen_by_hash: Mapping[Bytes32, SeenTx],
    creator: Address,
) -> None:
    """Refuse unless the creator sent each item of the plan exactly as planned."""
    invalid, pending = [], []
    for item in plan:
        tx_hash = hash_by_id.get(item.item_id)
        seen = None if tx_hash is None else seen_by_hash.get(tx_hash)
        reason = _invalid_reason(item, tx_hash, seen, hash_by_id, creator)
        entry = {"id": item.item_id, "hash": tx_hash}
        if reason is not None:
            invalid.append(entry | {"reason": reason})
        elif seen is None or seen.is_success is None:
            pending.append(entry)
    if invalid:
        raise TxInvalid(invalid)
    if pending:
        raise TxPending(pending)


def _invalid_reason(
    item: PlanItem,
    tx_hash: Bytes32 | None,
    seen: SeenTx | None,
    hash_by_id: Mapping[str, Bytes32],
    creator: Address,
) -> str | None:
    if tx_hash is None:
        return "no hash was confirmed for it"
    others = [id_ for id_, other in hash_by_id.items() if other == tx_hash and id_ != item.item_id]
    if others:
        return f"the hash was confirmed for {others[0]} too"
    return None if seen is None else _difference(item, seen, creator)


def _difference(item: PlanItem, seen: SeenTx, creator: Address) -> str | None:
    if seen.sender != creator:
        return f"sender is {seen.sender}, and the creator is {creator}"
    if seen.target != item.target:
        return f"target is {seen.target}, and the plan's is {item.target}"
    if seen.calldata != item.calldata:
        return "calldata differs from the plan's"
    if seen.value_wei != item.value_wei:
        return f"value is {seen.value_wei}, and the plan's is {item.value_wei}"
    return "the transaction reverted" if seen.is_success is False else None
