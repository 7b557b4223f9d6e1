"""No private key is in anything that a browser gets, nor in a variable that a build makes public."""

import ast
import base64
import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.e2e.key_scanner import KEY_BYTES, KeyScanner
from tests.e2e.walker import BUILD_BY_PREFIX, Walker, get_paths
from tests.rigs.installation import Running
from tests.rigs.values import a_key

from foretell.domain.contracts.sandbox_accounts import SANDBOX_ACCOUNTS
from foretell.domain.values.eip712 import address_of_key

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e")]

CHECKOUT = Path(__file__).parents[2]
BUNDLES = (CHECKOUT / "src" / "foretell" / "web", CHECKOUT / "web")
"""Where browser code is, once there is some: the files that are served, and their sources."""
NO_BROWSER_CODE = {".py", ".pyc", ".pyi"}
PUBLIC_NAME = re.compile(
    r"(?<![A-Z_])(NEXT_PUBLIC|VITE|PUBLIC|REACT_APP|EXPO_PUBLIC|NUXT_PUBLIC|GATSBY)_\w+"
)
"""Names whose values a build tool copies into browser code."""
KEY = a_key("planted")


@pytest.fixture
def scanner(shared: Running) -> KeyScanner:
    """A scanner for every key of the installation: all its accounts, and its master key."""
    master_key = (shared.data / "master.key").read_bytes()
    assert len(master_key) == KEY_BYTES
    accounts = [account.address for account in SANDBOX_ACCOUNTS]
    return KeyScanner(accounts, [master_key])


def bundle_files(*folders: Path) -> list[Path]:
    """Return the files of browser code."""
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix not in NO_BROWSER_CODE
        and "node_modules" not in path.parts
    ]


@pytest.mark.case("C-12")
@pytest.mark.spec(124)
@pytest.mark.parametrize("prefix", BUILD_BY_PREFIX)
async def test_no_answer_to_a_browser_has_a_key(
    walker: Walker, scanner: KeyScanner, prefix: str
) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        for path in get_paths(prefix):
            answer = await walker.ask(http, "GET", prefix, path)
            seen = answer.content + repr(answer.headers.raw).encode()
            assert (path, scanner.found_in(seen)) == (path, [])


@pytest.mark.spec(124)
async def test_no_image_or_document_that_is_served_has_a_key(
    shared: Running, scanner: KeyScanner
) -> None:
    ready = await shared.ready()
    query = {"slug": ready.market.slug}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        listed = await http.get(f"{ready.discovery}/markets", params=query)
        blobs = set(re.findall(r"https?://[^\"]+/blobs/[\w-]+", listed.text))
        assert blobs
        for url in (*blobs, *(f"{blob}/item" for blob in blobs)):
            answer = await http.get(url)
            assert (answer.status_code, scanner.found_in(answer.content)) == (200, [])
        for path in ("/", "/metrics", "/ready.json", "/.env", "/data/../ready.json"):
            answer = await http.get(f"http://127.0.0.1:{shared.port}{path}")
            assert (path, scanner.found_in(answer.content)) == (path, [])


@pytest.mark.spec(124)
async def test_no_browser_code_has_a_key(scanner: KeyScanner) -> None:
    found = {path: scanner.found_in(path.read_bytes()) for path in bundle_files(*BUNDLES)}
    assert {path: places for path, places in found.items() if places} == {}


@pytest.mark.spec(124)
async def test_what_the_command_prints_has_no_key(shared: Running, scanner: KeyScanner) -> None:
    await shared.ready()
    assert scanner.found_in(shared.output.encode()) == []


@pytest.mark.spec(124)
async def test_no_process_has_a_variable_that_a_build_makes_public(shared: Running) -> None:
    await shared.ready()
    environments = environments_of(str(shared.data))
    names = {pair.partition("=")[0] for pairs in environments for pair in pairs.split("\0")}
    assert len(environments) > 1
    assert "FORETELL_CHAIN_BLOCK_S" in names
    assert [name for name in names if PUBLIC_NAME.match(name)] == []


@pytest.mark.spec(124)
def test_no_module_names_a_variable_that_a_build_makes_public() -> None:
    named = {
        f"{path.relative_to(CHECKOUT)}:{node.lineno}"
        for path in (CHECKOUT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and PUBLIC_NAME.search(node.value)
    }
    assert named == set()


@pytest.mark.parametrize(
    "plant",
    [
        lambda key: b'{"privateKey":"0x' + key.hex().encode() + b'"}',
        lambda key: b'const k="' + key.hex().upper().encode() + b'";',
        lambda key: b"0xa9059cbb" + b"0" * 63 + key.hex().encode() + b"ff",
        lambda key: b'k:"' + base64.b64encode(key) + b'"',
        lambda key: b'k:"' + base64.urlsafe_b64encode(key).rstrip(b"=") + b'"',
    ],
    ids=["JSON", "a script", "calldata", "base64", "base64url"],
)
def test_the_scanner_finds_a_planted_key(tmp_path: Path, plant: Callable[[bytes], bytes]) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "index.js").write_bytes(b"x" * 100 + plant(KEY) + b"y" * 100)
    (path,) = bundle_files(tmp_path)
    assert len(KeyScanner([address_of_key(KEY)]).found_in(path.read_bytes())) == 1
    assert len(KeyScanner([], [KEY]).found_in(path.read_bytes())) == 1
    assert KeyScanner([address_of_key(a_key("another"))]).found_in(path.read_bytes()) == []


@pytest.mark.parametrize("name", ["VITE_KEY", "NEXT_PUBLIC_OPERATOR_KEY", "PUBLIC_KEY_URL"])
def test_a_public_name_is_recognized(name: str) -> None:
    assert PUBLIC_NAME.match(name)
    assert not PUBLIC_NAME.search("FORETELL_" + name)


def environments_of(data: str) -> list[str]:
    """Return the variables of each process that works on a data folder."""
    return [
        _read(folder / "environ").decode()
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit() and data.encode() in _read(folder / "cmdline")
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
