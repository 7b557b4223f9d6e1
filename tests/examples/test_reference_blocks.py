"""The code blocks of the reference, of the explanations and of the project's files: each is run or read here.

Those of the tutorial and of the how-tos are in `test_pages`; the programs of the README have tests of their own.
"""

import json
import re
import sqlite3
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.examples.conftest import ROOT
from tests.rigs.installation import Running

from foretell.edge.rate_limits import windows_with
from foretell.journal.files.revocations import FILE as REVOCATIONS
from foretell.runtime.files import PARTIAL_SUFFIX
from foretell.settings import Settings
from foretell.store.rebuild_lock import FILE as REBUILD_LOCK

pytestmark = [pytest.mark.xdist_group("examples")]

FILES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = [
    *sorted((ROOT / "docs" / "reference").glob("*.md")),
    *sorted((ROOT / "docs" / "explanation").glob("*.md")),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
    *(ROOT / name for name in FILES),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
READ_BY = {"json", "toml", "sql", "sh", "js", "text", ""}
"""Kinds of blocks: `js` is run by `test_typescript_client`; `text` and those without a kind are diagrams and forms."""


class Block(NamedTuple):
    page: str
    kind: str
    text: str


BLOCKS = [
    Block(path.relative_to(ROOT).as_posix(), found[1], found[2])
    for path in PAGES
    for found in BLOCK.finditer(path.read_text())
]


def blocks_of(kind: str) -> list[Block]:
    return [each for each in BLOCKS if each.kind == kind]


def name_of(block: Block) -> str:
    return f"{Path(block.page).stem}-{BLOCKS.index(block)}"


def test_every_kind_of_block_is_run_or_read() -> None:
    assert {each.kind for each in BLOCKS} <= READ_BY
    programs = {each.page for each in BLOCKS if each.kind == "js"}
    assert programs == {"docs/reference/typescript-client.md"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_row_of_a_table_is_below_the_names_of_its_columns(path: Path) -> None:
    """An empty line ends a table, and what follows is shown as text."""
    begun = re.findall(r"(?<!\|)\n(\|.*)\n(.*)", path.read_text())
    assert [row for row, below in begun if not re.fullmatch(r"\|[-:| ]+\|", below)] == []


def test_the_settings_name_every_file_of_the_data_folder(example_sandbox: Running) -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    text = page.partition("`data` contains")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([\w.-]+)/?`", text))
    found = {path.name for path in example_sandbox.data.iterdir() if path.suffix != PARTIAL_SUFFIX}
    assert found <= named
    assert {REBUILD_LOCK, REVOCATIONS} <= named, "files that appear later"


@pytest.mark.parametrize("block", blocks_of("json"), ids=name_of)
def test_a_block_of_json_is_json(block: Block) -> None:
    assert json.loads(block.text)


@pytest.mark.parametrize("block", blocks_of("toml"), ids=name_of)
def test_a_block_of_settings_is_accepted(block: Block, folder: Path) -> None:
    (folder / "foretell.toml").write_text(block.text)
    settings = Settings()  # refuses a name or a row that there is not
    assert settings.trusted_proxies
    assert windows_with(settings.rate_limits) != windows_with({})


@pytest.mark.parametrize("block", blocks_of("sql"), ids=name_of)
def test_a_query_runs_on_the_tables_of_a_sandbox(block: Block, example_sandbox: Running) -> None:
    (database,) = example_sandbox.data.glob("foretell.db")
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        names = [each[0] for each in connection.execute(block.text).description]
    finally:
        connection.close()
    assert names[0] == "trade_id"


@pytest.mark.parametrize("block", blocks_of("sh"), ids=name_of)
def test_a_command_of_make_exists_with_its_variables(block: Block) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for line in block.text.splitlines():
        program, target, *variables = line.partition("#")[0].split()
        assert program == "make"
        assert f"\n{target}:" in makefile
        for each in variables:
            assert f"$({each.partition('=')[0]})" in makefile
