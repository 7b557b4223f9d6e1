"""The build of the web app itself: its size, and what must not be in it."""

import gzip
import json
import re
from pathlib import Path

import pytest

from foretell.domain.contracts.sandbox_accounts import SANDBOX_ACCOUNTS
from foretell.web.build_files import BUILD, INDEX, read_build

ROOT = Path(__file__).parents[2]
FIRST_LOAD_BYTES_MAX = 250_000
SOURCE_LINES_MAX = 400
TEXT = re.compile(
    r">[^<>{}=;()]*[A-Za-z]{2,}[^<>{}=;()]*</"
    r"|\b(?:aria-label|title|placeholder|alt|label)=\"(?!https://\")[^\"]*[A-Za-z]{2,}[^\"]*\""
)
"""A text between tags, or in an attribute that a reader or a screen reader gets."""
SOURCES = sorted(
    path
    for pattern in ("src/**/*.ts*", "client/src/*.ts", "e2e/*.mjs")
    for path in (ROOT / "web").glob(pattern)
)


def test_the_first_load_is_small() -> None:
    files = read_build()
    page = files[INDEX].content.decode()
    named = re.findall(r'(?:src|href)="/(assets/[^"]+)"', page)
    assert len(named) >= 2
    sizes = {name: len(gzip.compress(files[name].content)) for name in named}
    assert sum(sizes.values()) < FIRST_LOAD_BYTES_MAX, sizes


def test_the_page_loads_nothing_from_elsewhere() -> None:
    page = (BUILD / INDEX).read_text()
    assert re.findall(r'(?:src|href)="(?!/)[^"]*"', page) == []
    assert "<script>" not in page


@pytest.mark.parametrize("name", sorted(read_build()))
def test_no_file_of_the_build_has_a_key(name: str) -> None:
    text = read_build()[name].content.lower()
    keys = [each.private_key.hex().encode() for each in SANDBOX_ACCOUNTS]
    assert [key for key in keys if key in text] == []
    assert b"test test test test" not in text  # the mnemonic of the sandbox's keys


def test_a_source_has_at_most_400_lines() -> None:
    lines = {path.name: path.read_text().count("\n") for path in SOURCES}
    assert lines
    assert {name: count for name, count in lines.items() if count > SOURCE_LINES_MAX} == {}


def test_all_texts_are_in_one_file() -> None:
    pages = [path for path in SOURCES if path.suffix == ".tsx"]
    assert len(pages) > 20
    found = {path.name: TEXT.findall(path.read_text()) for path in pages}
    assert {name: texts for name, texts in found.items() if texts} == {}
    assert TEXT.findall('<p className="muted">Nobody yet</p>')
    assert TEXT.findall('<img alt="A picture" />')


def test_every_dependency_is_pinned_to_one_version() -> None:
    described = [
        json.loads((ROOT / "web" / each / "package.json").read_text()) for each in ("", "client")
    ]
    versions = [
        version
        for package in described
        for kind in ("dependencies", "devDependencies")
        for version in package.get(kind, {}).values()
    ]
    assert len(versions) >= 14
    assert [each for each in versions if not re.fullmatch(r"\d+\.\d+\.\d+", each)] == []
