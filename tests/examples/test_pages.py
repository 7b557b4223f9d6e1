"""The pages of the tutorial and of the how-tos do what they say, and the site has no dead link."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import NamedTuple

import httpx
import pytest
import typer
from tests.examples.conftest import ROOT, WITHIN_S, Play, run_program
from tests.rigs.installation import Running

from foretell.cli.main import app

pytestmark = [pytest.mark.xdist_group("examples")]

DOCS = ROOT / "docs"
PAGES = sorted([*(DOCS / "tutorial").glob("*.md"), *(DOCS / "howto").glob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAVED = re.compile(r"\s*Save it as `([\w.-]+)`")
ASSIGNMENT = re.compile(r"([A-Z]+)=\$\(.*\)")
USUAL_URL = "http://127.0.0.1:8000"
KINDS = {"sh", "python", "json", "console", "text"}
"""Run as commands; run as programs; parsed; checked for commands that exist; diagrams."""


class Block(NamedTuple):
    kind: str
    text: str
    after: str


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for found in BLOCK.finditer(text):
        yield Block(found[1], found[2], text[found.end() :])


def curl_options() -> argparse.ArgumentParser:
    """Return the options of curl that pages use."""
    parser = argparse.ArgumentParser("curl", exit_on_error=False)
    parser.add_argument("url")
    for name in ("--silent", "--fail"):
        parser.add_argument(name, action="store_true", required=True)
    for name in ("--output", "--etag-save", "--etag-compare"):
        parser.add_argument(name)
    return parser


class Reader:
    """Somebody who does everything that a page says, in its order."""

    def __init__(
        self, command: Play, folder: Path, base_url: str, environment: dict[str, str]
    ) -> None:
        self._command = command
        self._folder = folder
        self._base_url = base_url
        self._environment = environment
        self._variables: dict[str, str] = {}

    def do(self, block: Block) -> None:
        match block.kind:
            case "sh":
                for line in block.text.splitlines():
                    self.run_line(line)
            case "python":
                exec(compile(block.text, "page", "exec"), {"__name__": "__main__"})
            case "json":
                self.keep(block)
            case kind:
                assert kind in KINDS, f"a block of {kind!r} is neither run nor read"

    def run_line(self, line: str) -> None:
        if found := ASSIGNMENT.fullmatch(line):
            self.assign(found[1], line)
            return
        program, *words = [Template(word).substitute(self._variables) for word in shlex.split(line)]
        if program == "curl":
            self.fetch(words)
            return
        assert program == "foretell", line
        self._command(*words)

    def assign(self, name: str, line: str) -> None:
        """Have the shell run a command, and keep its output as a variable."""
        script = f'{line}\nprintf %s "${name}"'
        value = run_program(["sh", "-c", script], self._folder, self._environment)
        assert value, line
        self._variables[name] = value

    def fetch(self, words: list[str]) -> None:
        """Do as curl does; who compares a tag has the content already."""
        given = curl_options().parse_args(words)
        tag = (self._folder / given.etag_compare).read_text() if given.etag_compare else ""
        headers = {"If-None-Match": tag} if tag else {}
        url = given.url.replace(USUAL_URL, self._base_url)
        answer = httpx.get(url, headers=headers, timeout=WITHIN_S)
        assert answer.status_code == (304 if tag else 200), answer.text
        if given.output and not tag:
            (self._folder / given.output).write_bytes(answer.content)
        if given.etag_save:
            (self._folder / given.etag_save).write_text(answer.headers["etag"])

    def keep(self, block: Block) -> None:
        json.loads(block.text)
        if found := SAVED.match(block.after):
            (self._folder / found[1]).write_text(block.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_runs(
    page: Path,
    command: Play,
    folder: Path,
    example_sandbox: Running,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORETELL_CHAIN_PORT", str(example_sandbox.chain_port))
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    base_url = f"http://127.0.0.1:{example_sandbox.port}"
    reader = Reader(command, folder, base_url, {**environment, "PATH": path})
    for block in blocks_of(page):
        reader.do(block)


def lines_elsewhere() -> list[str]:
    """Return the commands of pages that need another machine, or that the test has run already."""
    return [
        line.removeprefix("$ ").partition("#")[0].strip()
        for page in PAGES
        for block in blocks_of(page)
        if block.kind == "console"
        for line in block.text.splitlines()
    ]


@pytest.mark.parametrize("line", sorted(set(lines_elsewhere())))
def test_a_command_for_another_machine_exists_with_its_options(line: str) -> None:
    program, *words = shlex.split(line)
    if program == "export":
        return
    if program == "make":
        assert f"\n{words[0]}:" in (ROOT / "Makefile").read_text()
        return
    if program == "python":
        assert (ROOT / words[0]).is_file()
        return
    assert program == "foretell"
    command = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
    known = {name for each in command.params for name in each.opts}
    assert not hasattr(command, "commands"), f"{line} names no command"
    assert {word for word in words if word.startswith("--")} <= known


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Strict: a dead link, a missing anchor and a page that is not found are warnings."""
    packages = Path(sys.prefix) / "docs"
    line = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(
        line,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(packages), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert "WARNING" not in built.stderr
    index = json.loads((tmp_path / "search" / "search_index.json").read_text())
    assert {"tutorial/first-market.html", "reference/sdk.html"} <= {
        each["location"] for each in index["docs"]
    }


def test_every_page_is_in_the_index_of_the_repository() -> None:
    index = (DOCS / "README.md").read_text()
    pages = [path for path in DOCS.rglob("*.md") if path.parent != DOCS]
    listed = set(re.findall(r"\]\(([\w/.-]+\.md)", index))
    assert {str(path.relative_to(DOCS)) for path in pages} - listed == set()


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "docs/README.md"]
)
def test_every_link_of_a_page_of_the_repository_leads_to_a_file(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\((?!https?:|mailto:)([^)#\s]+)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []
