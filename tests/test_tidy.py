"""Rules that no formatter or linter holds: sizes, words, names, leftovers and floats."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import foretell
from foretell.settings import Settings

pytestmark = pytest.mark.xdist_group("tidy")  # every module is parsed once

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = Path(foretell.__file__).parent
MODULES: Final = sorted(PACKAGE.rglob("*.py"))
NOT_TRACKED: Final = frozenset({"node_modules", "__pycache__", ".git"})
TESTS: Final = sorted(
    path for path in (ROOT / "tests").rglob("*.py") if not NOT_TRACKED & set(path.parts)
)
SCRIPTS: Final = [*(ROOT / "contracts").glob("*.py"), *(ROOT / "requirements").glob("*.py")]
REFERENCE: Final = ROOT / "docs" / "reference"

MODULE_LINES_MAX: Final = 400
FUNCTION_LINES_MAX: Final = 60
APPLIED: Final = PACKAGE / "store" / "migrations" / "versions"
"""Applied migrations are never edited, so they are not split either."""

MODULES_PER_FOLDER_MAX: Final = 24
BANNED: Final = frozenset(
    [
        "tell",
        "tells",
        "telling",
        "told",
        "hear",
        "hears",
        "hearing",
        "heard",
        "wish",
        "wishes",
        "wished",
        "lane",
        "lanes",
        "purse",
        "purses",
        "slice",
        "slices",
        "sliced",
        "culprit",
        "culprits",
        "blank",
        "vault",
        "chance",
        "stage",
        "stages",
        "services",
        "anew",
        "lest",
        "whoever",
        "gotten",
    ]
)
"""Words that hide the field's own word; see CONTRIBUTING.md."""
SUSPECT: Final = re.compile("|".join(BANNED), re.IGNORECASE)
"""Lines worth a closer look, which costs much more."""
BY_RIGHT: Final = re.compile(
    r"keep_blank_values|(?<![a-zA-Z])vault_?\b|\bVAULT\b|_vault_|\bslice(?=[\(\)])|\"slice_moved\"|\.tell\(\)|def tell\(self\)"
)
"""Names of the neg-risk contracts, of Python's library and of a tag in journals."""
OPENING: Final = re.compile(r"(What|Who|Whose|Whether|How|Where|When|Which)\b")
CLASS_NAMES_SHARED: Final[dict[str, str]] = {}
"""Class names of several modules, each with its reason."""
TEXT_SUFFIXES: Final = frozenset({".py", ".md", ".vy", ".vyi", ".sh", ".toml", ".yml", ".yaml", ""})

LEFTOVERS: Final = re.compile(
    r"\b(TODO|FIXME|XXX)\b|NotImplementedError|unittest\.mock|pragma: no cover"
)
# Spelt so that it does not match itself.
MACHINE_PATH: Final = re.compile(r"/(?:home|root|work|Users)/\w|[A-Z]:\\+Users")
TRACKED: Final = ("src", "tests", "docs", "contracts", "requirements", "typings", ".ci")

FLOATS_ALLOWED: Final = {
    "strict_json.py": "JSON has numbers; a reader of amounts refuses those that are no integers"
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def is_float(node: ast.AST) -> bool:
    """Return whether an expression makes a float: a literal, or a call of `float`."""
    match node:
        case ast.Constant(value=float()) | ast.Call(func=ast.Name(id="float")):
            return True
        case _:
            return False


def tracked_files() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.name not in NOT_TRACKED)
    for folder in TRACKED:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and NOT_TRACKED.isdisjoint(path.parts):
                yield path


def banned_words(line: str) -> list[str]:
    """Return the banned words in a line; the parts of a name are words."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", BY_RIGHT.sub(" ", line))
    return [word for word in re.findall(r"[a-z]+", spaced.lower()) if word in BANNED]


def test_every_module_has_at_most_400_lines() -> None:
    modules = [path for path in (*MODULES, *SCRIPTS) if APPLIED not in path.parents]
    lines = {name_of(path): path.read_text().count("\n") for path in modules}
    assert {name: count for name, count in lines.items() if count > MODULE_LINES_MAX} == {}


def test_every_function_has_at_most_60_lines() -> None:
    modules = [path for path in (*MODULES, *SCRIPTS) if APPLIED not in path.parents]
    lines = {
        f"{name_of(path)}: {node.name}": lines_of(node)
        for path in modules
        for node in functions(path)
    }
    assert {name: count for name, count in lines.items() if count > FUNCTION_LINES_MAX} == {}


def test_every_module_has_a_docstring() -> None:
    silent = [path for path in MODULES if not ast.get_docstring(tree_of(path))]
    assert [name_of(path) for path in silent] == []


def test_a_module_opens_with_a_noun_phrase_or_an_imperative() -> None:
    modules = [*MODULES, *SCRIPTS, *TESTS]
    docstrings = {name_of(path): ast.get_docstring(tree_of(path)) or "" for path in modules}
    assert {name: each for name, each in docstrings.items() if OPENING.match(each)} == {}


def test_a_folder_has_few_enough_modules_to_read_its_listing() -> None:
    modules = [path for path in (*MODULES, *TESTS) if APPLIED not in path.parents]
    counts = Counter(name_of(path.parent) for path in modules if path.name != "__init__.py")
    assert {name: count for name, count in counts.items() if count > MODULES_PER_FOLDER_MAX} == {}


def test_a_class_name_stands_for_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name_of(path))
    shared = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert {name: shared[name] for name in shared.keys() - CLASS_NAMES_SHARED.keys()} == {}
    assert CLASS_NAMES_SHARED.keys() <= shared.keys()


def test_no_file_has_a_banned_word() -> None:
    found = {
        f"{name_of(path)}:{number}": words
        for path in tracked_files()
        if path.suffix in TEXT_SUFFIXES and APPLIED not in path.parents and path != Path(__file__)
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if SUSPECT.search(line) and (words := banned_words(line))
    }
    assert found == {}


def test_a_banned_word_is_found_in_prose_and_in_names() -> None:
    assert banned_words("Nobody told the TradingServices of a slice_size.") == [
        "told",
        "services",
        "slice",
    ]
    assert banned_words("vault_ = vault(slice(3), file.tell(), teller)") == []


def test_no_module_has_a_leftover() -> None:
    found = {name_of(path): LEFTOVERS.findall(path.read_text()) for path in (*MODULES, *SCRIPTS)}
    assert {name: words for name, words in found.items() if words} == {}


def test_the_domain_counts_in_integers() -> None:
    made = {
        f"{path.name}:{node.lineno}"  # type: ignore[attr-defined]  # an expression has a line
        for path in (PACKAGE / "domain").rglob("*.py")
        for node in ast.walk(tree_of(path))
        if is_float(node) and path.name not in FLOATS_ALLOWED
    }
    assert made == set()


def test_no_file_contains_a_path_of_a_developers_machine() -> None:
    found = {
        name_of(path): MACHINE_PATH.findall(path.read_bytes().decode("latin-1"))
        for path in tracked_files()
    }
    assert len(found) > len(MODULES)
    assert {name: paths for name, paths in found.items() if paths} == {}


def test_a_serving_process_does_not_import_slow_cryptography() -> None:
    """Signers are recovered by coincurve; eth-account is for the tests alone."""
    script = (
        "import sys, foretell.app.installation, foretell.cli.serve, foretell.cli.up\n"
        "print(sorted(sys.modules.keys() & {'eth_account', 'eth_keys', 'py_ecc', 'web3'}))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_the_help_imports_no_heavy_library() -> None:
    script = (
        "import sys, foretell.cli.main\n"
        "print(sorted(sys.modules.keys() & {'litestar', 'sqlalchemy', 'uvicorn', 'PIL', 'aiohttp'}))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize("name", Settings.model_fields)
def test_a_setting_is_documented(name: str) -> None:
    page = (REFERENCE / "settings.md").read_text()
    assert f"`{name}`" in page or f"`FORETELL_{name.upper()}`" in page
