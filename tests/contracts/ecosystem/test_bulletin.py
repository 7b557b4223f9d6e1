"""The board of clarifications at the optimistic adapter."""

import pytest
from tests.contracts.evm import Reverted, reverts
from tests.contracts.optimistic import Optimistic

UPDATES_MAX = 16
UPDATE_BYTES_MAX = 1_024
UPDATED = "AncillaryDataUpdated(bytes32,address,bytes)"


def post(optimistic: Optimistic, text: bytes, sender: str) -> int:
    """Post an update, and return its time."""
    optimistic.adapter.send("postUpdate", optimistic.question, text, sender=sender)
    return optimistic.world.evm.now()


def test_an_update_is_kept_and_logged(optimistic: Optimistic) -> None:
    question, creator = optimistic.question, optimistic.creator
    receipt = optimistic.adapter.send("postUpdate", question, b"at noon UTC", sender=creator)
    assert optimistic.adapter.logs(receipt, UPDATED) == [
        {"questionID": question, "owner": creator, "update": b"at noon UTC"}
    ]
    time = optimistic.world.evm.now()
    assert optimistic.adapter.call("getLatestUpdate", question, creator) == (time, b"at noon UTC")
    assert optimistic.adapter.call("getUpdates", question, creator) == ((time, b"at noon UTC"),)


def test_updates_are_listed_in_order_by_account_and_question(optimistic: Optimistic) -> None:
    outsider = optimistic.world.evm.actor("outsider").address
    times = [post(optimistic, text, optimistic.creator) for text in (b"one", b"two")]
    post(optimistic, b"a lie", outsider)
    updates = optimistic.adapter.call("getUpdates", optimistic.question, optimistic.creator)
    assert updates == ((times[0], b"one"), (times[1], b"two"))
    latest = optimistic.adapter.call("getLatestUpdate", optimistic.question, optimistic.creator)
    assert latest == updates[-1]
    assert optimistic.adapter.call("getUpdates", bytes(32), optimistic.creator) == ()


def test_there_is_no_latest_update_at_first(optimistic: Optimistic) -> None:
    args = (optimistic.question, optimistic.creator)
    assert optimistic.adapter.call("getLatestUpdate", *args) == (0, b"")


def test_updates_are_bounded_in_count_and_bytes(optimistic: Optimistic) -> None:
    with pytest.raises(Reverted):
        post(optimistic, bytes(UPDATE_BYTES_MAX + 1), optimistic.creator)
    for _ in range(UPDATES_MAX):
        post(optimistic, b"u" * UPDATE_BYTES_MAX, optimistic.creator)
    with reverts("TooManyUpdates"):
        post(optimistic, b"one more", optimistic.creator)
    updates = optimistic.adapter.call("getUpdates", optimistic.question, optimistic.creator)
    assert [text for _, text in updates] == [b"u" * UPDATE_BYTES_MAX] * UPDATES_MAX
    post(optimistic, b"another account's", optimistic.world.evm.actor("outsider").address)
