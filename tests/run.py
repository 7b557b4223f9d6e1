"""Runs a module of the tests as a program: `python tests/run.py contracts.gas --write`.

Packages of other people install a top-level folder of the same name, which Python would find first.
"""

import runpy
import sys
from pathlib import Path
from types import ModuleType


def main() -> None:
    """Run the module that the first argument names, with the others."""
    tests = ModuleType("tests")
    tests.__path__ = [str(Path(__file__).parent)]
    sys.modules["tests"] = tests
    name = sys.argv[1]
    sys.argv = sys.argv[1:]
    runpy.run_module(f"tests.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
