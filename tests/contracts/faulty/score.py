"""Compile the contracts with one fault each, and run the tests that should find it.

python tests/run.py contracts.faulty.score               all of them
python tests/run.py contracts.faulty.score --only fees   those whose name has the word
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from typing import Final

from tests.contracts.evm import COMMITTED, ROOT
from tests.contracts.faulty.compiling import compiled
from tests.contracts.faulty.patches import PATCHES, Patch

SOURCES: Final = ROOT / "contracts" / "src"
WORKERS: Final = 2
TESTS_DEADLINE_S: Final = 1_800
KILLED_SHARE_MIN: Final = 0.95
PYTEST_FOUND_A_FAILURE: Final = 1


class Fate(StrEnum):
    """What became of a faulty contract."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    INVALID = "INVALID"


def fate_of(patch: Patch) -> Fate:
    """Return whether a test fails with the fault; a fault that does not compile is invalid."""
    with tempfile.TemporaryDirectory() as folder:
        sources, artifacts = Path(folder) / "src", Path(folder) / "artifacts"
        shutil.copytree(SOURCES, sources)
        shutil.copytree(COMMITTED, artifacts)
        faulty = sources / f"{patch.source}.vy"
        text = faulty.read_text()
        if text.count(patch.text) != 1:
            return Fate.INVALID
        faulty.write_text(text.replace(patch.text, patch.fault))
        if not _compile(sources, artifacts, list(contracts_of(patch.source))):
            return Fate.INVALID
        return _tested(patch.tests, artifacts)


def contracts_of(source: str) -> Iterator[str]:
    """Yield the contracts that a source is a part of."""
    for path in sorted(SOURCES.glob("*.vy")):
        if source in {path.stem, *modules_of(path)}:
            yield path.stem


def modules_of(path: Path) -> set[str]:
    """Return the modules that a source imports, directly or not."""
    found: set[str] = set()
    waiting = [path]
    while waiting:
        for line in waiting.pop().read_text().splitlines():
            words = line.split(" ")
            if len(words) != 4 or (words[0], words[2]) != ("from", "import"):
                continue
            module = f"{words[1]}/{words[3]}"
            if module not in found and (SOURCES / f"{module}.vy").is_file():
                found.add(module)
                waiting.append(SOURCES / f"{module}.vy")
    return found


def _compile(sources: Path, artifacts: Path, names: Sequence[str]) -> bool:
    command = [sys.executable, "-m", "vyper", "--evm-version", "cancun", "--disable-sys-path"]
    command += ["--no-bytecode-metadata", "-p", str(sources), "-f", "bytecode,bytecode_runtime"]
    done = compiled([*command, *(str(sources / f"{name}.vy") for name in names)])
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        return False
    codes = done.stdout.splitlines()
    for name, creation, deployed in zip(names, codes[::2], codes[1::2], strict=True):
        path = artifacts / f"{name}.json"
        fields = json.loads(path.read_text())
        path.write_text(json.dumps(fields | {"bytecode": creation, "deployedBytecode": deployed}))
    return True


def _tested(tests: str, artifacts: Path) -> Fate:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "0"]
    done = subprocess.run(
        [*command, tests],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"FORETELL_TEST_ARTIFACTS": str(artifacts)},
        timeout=TESTS_DEADLINE_S,
    )
    return Fate.KILLED if done.returncode == PYTEST_FOUND_A_FAILURE else Fate.SURVIVED


def main() -> None:
    parser = argparse.ArgumentParser(description="Try faulty contracts against their tests.")
    parser.add_argument("--only", default="", help="a word of the names to try")
    word = parser.parse_args().only
    patches = [patch for patch in PATCHES if word in patch.name]
    killed = 0
    with ThreadPoolExecutor(WORKERS) as pool:
        for patch, fate in zip(patches, pool.map(fate_of, patches), strict=True):
            killed += fate is Fate.KILLED
            sys.stdout.write(f"{fate:>9} {patch.name}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{killed} of {len(patches)} killed\n")
    sys.exit(killed < KILLED_SHARE_MIN * len(patches))


if __name__ == "__main__":
    main()
