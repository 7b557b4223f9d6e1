"""A process that makes processes of an installation: forks of itself, with everything imported.

It reads jobs, a line of JSON each, and reports of a process, under the name in its job: `began
<pid>`, `serves`, and `ended <code>`, negative when a signal ended it. There is no chain: every
maker's nonce is the first one.
"""

import asyncio
import json
import os
import signal
import sys
import traceback
import types
from pathlib import Path
from typing import Any

# The tests are not an installed package, and others install one of that name.
tests = types.ModuleType("tests")
tests.__path__ = [str(Path(__file__).parents[1])]
sys.modules["tests"] = tests

from tests.faults.fault_points import FAULTS  # noqa: E402 - after the lines above

from foretell.app import builders  # noqa: E402
from foretell.app.builders import Resources  # noqa: E402
from foretell.app.installation import Installation, ParentProcess  # noqa: E402
from foretell.app.roles import Role  # noqa: E402
from foretell.app.running import run_until_stopped, set_up_logs  # noqa: E402
from foretell.bench.rigs.trading_alone import NoWallets  # noqa: E402
from foretell.domain.values.hexadecimal import Address  # noqa: E402
from foretell.settings import Settings  # noqa: E402
from foretell.trading.accounts.accounts import ChainView  # noqa: E402


def report(*words: object) -> None:
    """Write a line in one piece: forks share the pipe."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def without_chain(_ground: Resources) -> ChainView:
    async def fetch_nonce(_exchange: Address, _maker: Address) -> int:
        return 0

    async def fetch_has_code(_address: Address) -> bool:
        return False

    return ChainView(fetch_nonce, fetch_has_code, NoWallets())


def begin(job: dict[str, Any]) -> None:
    """Fork a parent that reports how the process ends, and from that the process itself."""
    if os.fork():
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os._exit(end_code(job))
    report(job["name"], "began", pid)
    _, status = os.waitpid(pid, 0)
    report(job["name"], "ended", os.waitstatus_to_exitcode(status))
    os._exit(0)


def end_code(job: dict[str, Any]) -> int:
    """Serve, and return the exit code of the command."""
    folder = Path(job["folder"])
    os.chdir(folder)
    with (folder / f"log of {job['name']}").open("a") as log:
        os.dup2(log.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.update(job["environment"])
        FAULTS[job["fault"]](folder / "armed")
        try:
            serve(job)
        except BaseException:  # noqa: BLE001 - it is printed, as the command does
            traceback.print_exc()
            return 1
    return 0


def serve(job: dict[str, Any]) -> None:
    async def greet() -> None:
        report(job["name"], "serves")
        await asyncio.sleep(0)

    settings = Settings()
    set_up_logs(settings)
    roles = [Role(role) for role in job["roles"]]
    parent = ParentProcess() if Role.ENGINE in roles else None
    installation = Installation(settings, roles, parent=parent)
    run_until_stopped(installation, greet, lambda: None)


if __name__ == "__main__":
    vars(builders)["chain_view"] = without_chain
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        begin(json.loads(line))
