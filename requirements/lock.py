"""Resolve the dependencies and write the lock files, with hashes and without index addresses."""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
PYTHON = "3.11"
OPTIONS = ("--universal", "--python-version", PYTHON, "--generate-hashes", "--no-header")
KUEST = ("builder-signing-sdk", "clob-client", "eip712-structs", "order-utils")
SETS = {
    "run.txt": ("pyproject.toml", "--group", "build"),
    "dev.txt": (
        *("pyproject.toml", "--group", "build", "--group", "dev", "--group", "ecosystem"),
        *("--constraints", "requirements/run.txt"),
        # The two clients' packages have the same import names: kuest's are installed in another folder.
        *(f"--no-emit-package=kuest-py-{name}" for name in KUEST),
    ),
    "peers.txt": ("--group", "peers"),
    "generator.txt": ("--group", "generator"),
    "audit.txt": ("--group", "audit"),
    "docs.txt": ("--group", "docs"),
    "node.txt": ("--group", "node"),
    "uv.txt": ("--group", "installer"),
}


def main() -> None:
    """Write every lock file, run.txt first, because the others must agree with it."""
    for name, what in SETS.items():
        command = (sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-emit-index-url")
        target = ("--output-file", f"requirements/{name}")
        subprocess.run((*command, *OPTIONS, *what, *target), cwd=FOLDER.parent, check=True)


if __name__ == "__main__":
    main()
