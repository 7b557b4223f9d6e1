"""The pages that are made from the code are those that the code makes now."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "requirements" / "reference.py"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


PAGES = [
    "operations.md",
    "errors.md",
    "contract-interfaces.md",
    "metrics.md",
    "all-settings.md",
]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_made_from_the_code_equals_it(reference: ModuleType, name: str) -> None:
    written = (ROOT / "docs" / "reference" / name).read_text()
    assert written == reference.pages()[name], "run make reference"


def test_every_page_that_is_made_is_compared(reference: ModuleType) -> None:
    assert set(reference.pages()) == set(PAGES)


def test_every_error_of_the_page_has_a_cause_and_a_cure(reference: ModuleType) -> None:
    rows = [
        [cell.strip() for cell in line.split(" | ")]
        for line in reference.pages()["errors.md"].splitlines()
        if line.startswith("| `")
    ]
    assert len(rows) > 100
    assert [row[0] for row in rows if len(row) != 4 or not row[2] or row[3] in {"|", ""}] == []
