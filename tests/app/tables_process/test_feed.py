import pytest

from foretell.app.tables_process.feed import Feed, FeedLimits, Frame


def a_frame(number: int, commands: int = 1, size: int = 10) -> Frame:
    """Return the frame of the commands up to ten times its number."""
    return Frame(10 * (number - 1), 10 * number, commands, bytes(size))


def a_feed(*numbers: int, sent: int = 0, **limits: int) -> Feed:
    feed = Feed(0, FeedLimits(**limits))
    for number in numbers:
        assert feed.add(a_frame(number))
    for _ in range(sent):
        assert feed.next_unsent() is not None
    return feed


def unsent(feed: Feed) -> list[int]:
    """Return the sequences of the frames that are to be sent, which then are."""
    sequences = []
    while (frame := feed.next_unsent()) is not None:
        sequences.append(frame.last)
    return sequences


def test_frames_are_sent_once_and_in_order() -> None:
    feed = a_feed(1, 2, 3)
    assert unsent(feed) == [10, 20, 30]
    assert unsent(feed) == []


def test_a_new_process_gets_every_frame_that_the_tables_lack() -> None:
    feed = a_feed(1, 2, 3, 4, sent=3)
    feed.confirm(10)
    feed.begin_again()
    assert feed.is_complete_after(10)
    assert unsent(feed) == [20, 30, 40]


def test_a_frame_that_the_tables_have_a_part_of_stays() -> None:
    feed = a_feed(1, 2, sent=2)
    feed.confirm(15)
    feed.begin_again()
    assert feed.is_complete_after(15)
    assert unsent(feed) == [20]


def test_tables_that_were_set_back_lack_confirmed_frames() -> None:
    feed = a_feed(1, 2, sent=2)
    feed.confirm(20)
    assert not feed.is_complete_after(10)
    assert feed.is_complete_after(20)


def test_tables_may_have_frames_that_were_not_sent() -> None:
    feed = a_feed(1, 2, 3, sent=1)
    feed.confirm(25)
    assert unsent(feed) == [30]


@pytest.mark.parametrize(
    ("commands", "size", "limits"),
    [(5, 10, {"commands_max": 12}), (5, 100, {"bytes_max": 299})],
    ids=["number", "bytes"],
)
def test_the_oldest_frames_make_room(commands: int, size: int, limits: dict[str, int]) -> None:
    feed = Feed(0, FeedLimits(**limits))
    assert feed.add(a_frame(1, commands, size))
    assert feed.add(a_frame(2, commands, size))
    assert not feed.add(a_frame(3, commands, size))
    assert not feed.is_complete_after(9)
    assert feed.is_complete_after(10)
    assert unsent(feed) == [20, 30]


def test_a_sent_frame_makes_room_without_a_loss_for_its_process() -> None:
    feed = a_feed(1, 2, sent=1, commands_max=2)
    assert feed.add(a_frame(3))
    assert unsent(feed) == [20, 30]
    feed.begin_again()
    assert not feed.is_complete_after(0)


def test_a_frame_that_is_too_large_alone_is_not_kept() -> None:
    feed = Feed(0, FeedLimits(bytes_max=5))
    assert not feed.add(a_frame(1))
    assert unsent(feed) == []
    assert feed.is_complete_after(10)
