"""The installer: one line for each reason to stop, and nothing made before it."""

import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEADLINE_S = 1_800.0
"""Only against a hang: an environment with pip takes a busy machine minutes."""
REFUSED_PORT = 9
"""The port of the discard service, on which no program listens."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What an installation reads of a checkout."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "requirements", tree / "requirements")
    shutil.copytree(ROOT / "contracts", tree / "contracts", ignore=lambda *_: ["node_modules"])
    shutil.copy(ROOT / "pyproject.toml", tree)
    runtime = tree / "src" / "foretell" / "runtime"
    runtime.mkdir(parents=True)
    shutil.copy(ROOT / "src" / "foretell" / "runtime" / "interpreter.py", runtime)
    return tree


def install(tree: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return subprocess.run(
        ["sh", "requirements/install.sh", "run"],
        cwd=tree,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def program(path: Path, script: str) -> Path:
    """Write a program that stands in for a Python."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def an_old_python(path: Path) -> Path:
    """Return a Python that says it is 3.9, and must not be asked to install."""
    script = 'case "$2" in *exit*) exit 1 ;; *write*) printf 3.9.18 ;; *) touch asked ;; esac'
    return program(path, script)


def a_new_python(path: Path, *, is_preferred: bool) -> Path:
    """Return a Python that says it is 3.11, and prints its path when it is asked to install."""
    return program(
        path,
        f'case "$*" in *write*) printf 3.11.9 ;; *interpreter.py*) exit {int(not is_preferred)} ;;'
        ' *install.py*) echo "$0 $*" ;; esac',
    )


def a_path(folder: Path) -> str:
    """Return a PATH of a folder, which has a shell too."""
    folder.mkdir(exist_ok=True)
    for name in ("sh", "dirname"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return str(folder)


def test_a_python_that_is_too_old_is_named_and_nothing_is_made(tree: Path) -> None:
    before = sorted(tree.rglob("*"))
    old = an_old_python(tree.parent / "old" / "python3.9")
    ran = install(tree, PYTHON=str(old))
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        1,
        "",
        f"error: {old} is Python 3.9.18, and 3.11 or newer is needed; set PYTHON to one\n",
    )
    assert sorted(tree.rglob("*")) == before


def test_without_a_new_python_those_that_were_seen_are_named(tree: Path) -> None:
    folder = tree.parent / "path"
    an_old_python(folder / "python3")
    ran = install(tree, PATH=a_path(folder), PYTHON="", SYSTEM_PYTHON="/nowhere/python3")
    assert ran.returncode == 1
    assert ran.stderr == (
        "error: Python 3.11 or newer is needed, python3 is 3.9.18; install one, or name it:"
        " make PYTHON=/path/to/python3.11\n"
    )
    assert not (tree / ".venv").exists()


@pytest.mark.parametrize("place", ["first/python3.12", "second/python3", "system/python3"])
def test_an_optimized_python_is_preferred_wherever_it_is(tree: Path, place: str) -> None:
    folder = tree.parent
    a_new_python(folder / "first" / "python3", is_preferred=False)
    preferred = a_new_python(folder / place, is_preferred=True)
    ran = install(
        tree,
        PATH=f"{a_path(folder / 'first')}:{folder / 'second'}",
        PYTHON="",
        SYSTEM_PYTHON=str(folder / "system" / "python3"),
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == f"{preferred} requirements/install.py run\n"


def test_without_an_optimized_python_the_first_new_one_installs(tree: Path) -> None:
    folder = tree.parent
    first = a_new_python(folder / "first" / "python3", is_preferred=False)
    a_new_python(folder / "second" / "python3", is_preferred=False)
    path = f"{a_path(folder / 'first')}:{folder / 'second'}"
    ran = install(tree, PATH=path, PYTHON="", SYSTEM_PYTHON="/nowhere/python3")
    assert ran.stdout == f"{first} requirements/install.py run\n"


def test_a_python_that_is_named_is_taken_though_another_is_optimized(tree: Path) -> None:
    folder = tree.parent
    named = a_new_python(folder / "named" / "python3", is_preferred=False)
    a_new_python(folder / "first" / "python3", is_preferred=True)
    ran = install(tree, PATH=a_path(folder / "first"), PYTHON=str(named))
    assert ran.stdout == f"{named} requirements/install.py run\n"


@pytest.mark.parametrize(("has_packages", "installs"), [(True, ".venv/bin/python"), (False, "")])
def test_an_environment_keeps_its_python_once_it_has_packages(
    tree: Path, *, has_packages: bool, installs: str
) -> None:
    preferred = a_new_python(tree.parent / "first" / "python3", is_preferred=True)
    a_new_python(tree / ".venv" / "bin" / "python", is_preferred=False)
    if has_packages:
        (tree / ".venv" / ".foretell-run").touch()
    ran = install(tree, PATH=a_path(tree.parent / "first"), PYTHON="")
    assert ran.stdout == f"{installs or preferred} requirements/install.py run\n"


def test_a_python_that_does_not_run_is_named(tree: Path) -> None:
    ran = install(tree, PYTHON="/nowhere/python3")
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: /nowhere/python3 is not a Python that runs")


@pytest.mark.parametrize("name", ["venv", "ensurepip"])
def test_a_python_without_venv_or_ensurepip_says_what_to_install(tree: Path, name: str) -> None:
    hidden = tree.parent / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        f"util.find_spec = lambda name: None if name == {name!r} else find(name)\n"
    )
    ran = install(tree, PYTHON=sys.executable, PYTHONPATH=str(hidden))
    assert ran.returncode == 1
    assert f"has no {name}: install python3-venv" in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert not (tree / ".venv").exists()


def test_a_disk_without_room_is_named_before_anything_is_made(tree: Path) -> None:
    hidden = tree.parent / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import shutil\nshutil.disk_usage = lambda path: type('Usage', (), {'free': 5_000_000})\n"
    )
    ran = install(tree, PYTHON=sys.executable, PYTHONPATH=str(hidden))
    assert ran.returncode == 1
    assert "has 5 MB free, and 900 MB are needed" in ran.stderr
    assert not (tree / ".venv").exists()


def test_an_environment_of_another_python_is_made_again_and_no_network_is_one_line(
    tree: Path,
) -> None:
    program(tree / ".venv" / "bin" / "python", "echo /elsewhere 3 12 1")
    left = tree / ".venv" / "left"
    left.touch()
    ran = install(
        tree,
        PYTHON=sys.executable,
        PIP_INDEX_URL=f"http://127.0.0.1:{REFUSED_PORT}/simple",
        PIP_CONFIG_FILE=os.devnull,
        PIP_NO_CACHE_DIR="1",
        PIP_RETRIES="0",
    )
    assert not left.exists()
    assert (tree / ".venv" / "bin" / "pip").exists()
    assert "the one before was of another Python … " in ran.stdout
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: the package index cannot be reached")
    assert ran.stderr.count("\n") == 1


def test_what_is_installed_is_left_alone() -> None:
    """This checkout's tests run, so it is complete; what Python compiles meanwhile is no source."""
    compiled = ROOT / "requirements" / "pages" / "__pycache__" / f"{uuid.uuid4()}.pyc"
    compiled.parent.mkdir(exist_ok=True)
    compiled.touch()
    try:
        ran = install(ROOT, PYTHON=sys.executable)
    finally:
        compiled.unlink()
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
