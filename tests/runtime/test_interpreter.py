import platform
import subprocess
import sys

import pytest

from foretell.runtime import interpreter
from foretell.runtime.interpreter import (
    Interpreter,
    is_preferred,
    optimized_by,
    running_interpreter,
)

PLAIN = {
    "CONFIG_ARGS": "'--prefix=/usr/local' '--enable-shared'",
    "PY_CFLAGS": "-O3 -Wall",
    "PY_CFLAGS_NODIST": "-std=c11",
    "PGO_PROF_GEN_FLAG": "-fprofile-generate",
    "PGO_PROF_USE_FLAG": "-fprofile-use -fprofile-correction",
}
"""The configuration of a build without a profile: the flags are known, and not used."""


def test_a_build_that_only_knows_the_flags_is_plain() -> None:
    assert optimized_by(PLAIN) is None


@pytest.mark.parametrize(
    ("name", "value", "sign"),
    [
        ("CONFIG_ARGS", "'CC=gcc -O2' '--enable-optimizations' '--with-lto'", "configured with"),
        ("PY_CFLAGS_NODIST", "-std=c11 -fprofile-use -fprofile-correction", "-fprofile-use"),
        ("PY_CORE_CFLAGS", '-fprofile-instr-use="code.profclangd"', "-fprofile-instr-use"),
        ("PGO_PROF_USE_FLAG", "", "removed from its record"),
    ],
)
def test_a_profile_guided_build_is_known_by_its_configuration(
    name: str, value: str, sign: str
) -> None:
    assert sign in (optimized_by({**PLAIN, name: value}) or "")


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"PGO_PROF_GEN_FLAG": "", "PGO_PROF_USE_FLAG": ""},
        {**PLAIN, "CONFIG_ARGS": "'--enable-optimizations=no'"},
    ],
)
def test_a_configuration_without_a_sign_is_plain(variables: dict[str, str]) -> None:
    assert optimized_by(variables) is None


def test_the_running_interpreter_is_named_with_its_version_and_build() -> None:
    words = running_interpreter().words()
    assert words.startswith(f"{platform.python_implementation()} {platform.python_version()}, ")
    assert "plain build" in Interpreter("CPython", "3.11.7", None).words()
    assert "optimized build: a sign" in Interpreter("CPython", "3.11.7", "a sign").words()


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (Interpreter("CPython", "3.12.1", "a sign"), True),
        (Interpreter("CPython", "3.12.1", None), False),
        (Interpreter("PyPy", "3.11.0", "a sign"), False),
    ],
)
def test_an_optimized_cpython_is_preferred(found: Interpreter, *, expected: bool) -> None:
    assert is_preferred(found) is expected


@pytest.mark.parametrize("missing", ["venv", "ensurepip"])
def test_a_python_that_makes_no_environments_is_not_preferred(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == missing else object()
    )
    assert not is_preferred(Interpreter("CPython", "3.12.1", "a sign"))


def test_the_installer_runs_it_without_the_package() -> None:
    """Before anything is installed, so it must import the standard library alone."""
    ran = subprocess.run([sys.executable, "-I", "-S", interpreter.__file__], check=False)
    assert ran.returncode == int(not is_preferred(running_interpreter()))
