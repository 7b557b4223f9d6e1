import asyncio
from pathlib import Path

import pytest

from foretell.app.lifetime import Lifetime
from foretell.domain.errors.families import ForetellError

pytestmark = pytest.mark.anyio


async def test_a_stop_ends_the_task_and_then_releases_the_last_acquired_first() -> None:
    lifetime, released = Lifetime(), list[str]()
    lifetime.closing.callback(released.append, "first")
    lifetime.closing.callback(released.append, "second")

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            released.append("task")

    lifetime.run(work())
    await asyncio.sleep(0)
    await lifetime.stop()
    assert released == ["task", "second", "first"]


async def test_a_start_that_fails_releases_everything() -> None:
    lifetime, released = Lifetime(), list[str]()

    async def start() -> None:
        async with lifetime.starting():
            lifetime.closing.callback(released.append, "first")
            raise OSError("away")

    with pytest.raises(OSError, match="away"):
        await start()
    assert released == ["first"]


async def test_a_data_folder_has_one_process_until_it_is_released(tmp_path: Path) -> None:
    first, second = Lifetime(), Lifetime()
    first.take_folder(tmp_path / "data")
    with pytest.raises(ForetellError):
        second.take_folder(tmp_path / "data")
    await first.stop()
    second.take_folder(tmp_path / "data")
    await second.stop()


async def test_the_failure_of_the_task_is_raised_to_its_waiter() -> None:
    lifetime = Lifetime()

    async def fail() -> None:
        raise OSError("away")

    lifetime.run(fail())
    with pytest.raises(OSError, match="away"):
        await lifetime.wait()
    await lifetime.stop()
