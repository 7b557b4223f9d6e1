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
    "parquet.txt": ("--group", "parquet"),
    "peers.txt": ("--group", "peers"),
    "generator.txt": ("--group", "generator"),
    "audit.txt": ("--group", "audit"),
    "docs.txt": ("--group", "docs"),
    "node.txt": ("--group", "node"),
    "uv.txt": ("--group", "installer"),
}
CLIENT_HEADER = """\
# An unmodified client, and what it alone needs. Several clients are packages of the same import names, so
# each is installed into a folder of its own; what they need besides is in dev.txt.
"""
CLIENTS = {
    "kuest-py-builder-relayer-client": (
        "kuest-py-builder-relayer-client==2.0.9",
        "kuest-py-builder-signing-sdk==2.0.2",
    ),
    "kuest-py-clob-client": (
        "kuest-py-clob-client==0.34.6",
        "kuest-py-order-utils==0.3.4",
        "kuest-py-builder-signing-sdk==0.0.2",
        "kuest-py-eip712-structs==0.0.3",
    ),
    "kuest-py-clob-client-2": (
        "kuest-py-clob-client==2.0.15",
        "kuest-py-order-utils==0.3.7",
        "kuest-py-builder-signing-sdk==2.0.2",
        "kuest-py-eip712-structs==0.0.4",
    ),
    "py-builder-relayer-client": (
        "py-builder-relayer-client==0.0.3",
        "py-builder-signing-sdk==0.0.2",
    ),
    "py-clob-client": ("py-clob-client==0.34.6", "py-order-utils==0.3.2"),
    "py-clob-client-v2": (
        "py-clob-client-v2==1.2.1",
        "py-order-utils==0.3.2",
        "poly-eip712-structs==0.0.1",
    ),
}
CLIENT_OPTIONS = ("--no-deps", "--no-annotate", "--quiet", "--no-emit-index-url")


def main() -> None:
    """Write every lock file, run.txt first, because the others must agree with it."""
    for name, what in SETS.items():
        command = (sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-emit-index-url")
        target = ("--output-file", f"requirements/{name}")
        subprocess.run((*command, *OPTIONS, *what, *target), cwd=FOLDER.parent, check=True)
    lock_clients()


def lock_clients() -> None:
    """Write the lock file of each client."""
    for name, pins in CLIENTS.items():
        command = (sys.executable, "-m", "uv", "pip", "compile", "-", *CLIENT_OPTIONS, *OPTIONS)
        wanted = "\n".join(pins)
        done = subprocess.run(command, input=wanted, text=True, check=True, capture_output=True)
        (FOLDER / "clients" / f"{name}.txt").write_text(CLIENT_HEADER + done.stdout)


if __name__ == "__main__":
    main()
