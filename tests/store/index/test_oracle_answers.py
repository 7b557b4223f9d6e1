import pytest
from tests.rigs.values import a_word, an_address

from foretell.store.database import Database
from foretell.store.index.oracle_answers import Answer, AnswerStep, load_answers, record_answers

pytestmark = pytest.mark.anyio

ADAPTER, ANN = an_address("adapter"), an_address("ann")
RAIN, SNOW = a_word("rain"), a_word("snow")


def a_step(block: int, step: AnswerStep, question: str = RAIN) -> Answer:
    tx_hash = a_word(f"tx {block}")
    return Answer(block, 0, 0, ADAPTER, a_word(question), step, ANN, str(-(2**255)), 7, tx_hash)


async def test_steps_are_loaded_by_question_in_their_order(database: Database) -> None:
    steps = [a_step(1, AnswerStep.PROPOSED, "rain"), a_step(2, AnswerStep.DISPUTED, "rain")]
    other = a_step(3, AnswerStep.PROPOSED, "snow")
    async with database.writing() as tx:
        await record_answers(tx, [steps[1], other, steps[0]])
        await record_answers(tx, [])
        assert await load_answers(tx, [RAIN]) == steps
        assert await load_answers(tx, [RAIN, SNOW]) == [*steps, other]
        assert await load_answers(tx, []) == []
