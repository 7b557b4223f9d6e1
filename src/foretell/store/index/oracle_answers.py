"""Answers at the optimistic oracle: proposals and disputes.

Written by the indexer.
"""

import enum
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.lookups import among
from foretell.store.tables import answers


class AnswerStep(enum.StrEnum):
    """A step towards a question's answer."""

    PROPOSED = "proposed"
    DISPUTED = "disputed"


class Answer(NamedTuple):
    """A step towards the answer of a question, with the question's id at the adapter.

    The price is a decimal string: it may have 256 bits.
    """

    block_number: int
    log_index: int
    part: int
    adapter: Address
    question_id: Bytes32
    step: AnswerStep
    account: Address
    price: str
    timestamp_s: int
    tx_hash: Bytes32


async def record_answers(tx: Transaction, steps: Sequence[Answer]) -> None:
    """Store steps."""
    await tx.insert_rows(answers, [(*each[:5], each.step.value, *each[6:]) for each in steps])


_QUESTIONS: Final = "questions"
_ANSWERS: Final = (
    sa.select(answers)
    .where(answers.c.question_id.in_(among(_QUESTIONS)))
    .order_by(answers.c.block_number, answers.c.log_index)
)


async def load_answers(tx: Transaction, question_ids: Collection[str]) -> Sequence[Answer]:
    """Return the steps of these questions, the oldest first."""
    rows = await tx.all(_ANSWERS, {_QUESTIONS: list(question_ids)})
    return [Answer._make(row)._replace(step=AnswerStep(row.step)) for row in rows]
