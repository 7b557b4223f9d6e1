import re
import time

from foretell.app.clock_and_ids import new_key, new_uuid, new_word, now_ms, numbered_ids

DRAWS = 100


def test_the_time_is_in_milliseconds() -> None:
    before = time.time_ns() // 1_000_000
    assert before <= now_ms() <= time.time_ns() // 1_000_000


def test_no_two_draws_are_alike() -> None:
    drawn = [*(new_uuid() for _ in range(DRAWS)), *(new_word() for _ in range(DRAWS))]
    drawn += [new_key().hex() for _ in range(DRAWS)]
    assert len(set(drawn)) == 3 * DRAWS


def test_no_two_makers_of_ids_make_the_same() -> None:
    makers = [numbered_ids() for _ in range(DRAWS)]
    made = [make() for make in makers for _ in range(2)]
    assert len(set(made)) == 2 * DRAWS
    assert all(re.fullmatch(r"[0-9a-f]{32}", one) for one in made)


def test_what_is_drawn_has_its_form() -> None:
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", new_uuid())
    assert re.fullmatch(r"0x[0-9a-f]{64}", new_word())
    assert len(new_key()) == 32
