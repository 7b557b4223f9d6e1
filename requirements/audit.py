"""Audit the locked packages for known vulnerabilities, or list them as a bill of materials (SBOM).

`audit.py vulnerabilities` asks the package registries; `audit.py sbom FOLDER` reads the lock files alone.
A mirror of a registry often cannot answer. Nothing is known then, which is not the same as no vulnerability: the
exit code is 3.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from install import (
    AUDIT,
    CONTRACTS,
    LOCKS,
    PYTHON,
    ROOT,
    VENV,
    InstallationFailed,
    finished,
    has_npm,
    npm_of_the_index,
)

RUN_LOCK: Final = LOCKS / "run.txt"
FOUND: Final = 1
MISUSED: Final = 2
UNKNOWN: Final = 3
"""The exit code when a registry did not answer for every package."""
EXCERPT_CHARS: Final = 120


class NotAudited(Exception):
    """A registry that did not answer for every package; the text says which, in one line."""


def main() -> int:
    """Do what the arguments say; return the exit code."""
    match sys.argv[1:]:
        case ["vulnerabilities"]:
            return report_vulnerabilities()
        case ["sbom", folder]:
            return report_sbom(Path(folder))
        case _:
            sys.stderr.write("usage: requirements/audit.py vulnerabilities | sbom FOLDER\n")
            return MISUSED


def report_vulnerabilities() -> int:
    """Print the known vulnerabilities of the packages of both registries."""
    codes = []
    for name, audit in (("Python", python_vulnerabilities), ("npm", npm_vulnerabilities)):
        try:
            found, packages = audit()
        except NotAudited as reason:
            sys.stderr.write(f"not audited: {name} packages: {reason}\n")
            codes.append(UNKNOWN)
            continue
        for line in found:
            sys.stdout.write(f"{name}: {line}\n")
        sys.stdout.write(f"{name}: {len(found)} known vulnerabilities in {packages} packages\n")
        codes.append(FOUND if found else 0)
    return FOUND if FOUND in codes else max(codes)


def report_sbom(folder: Path) -> int:
    """Write both bills of materials, and print where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, write in (("python.cdx.json", write_python_sbom), ("npm.cdx.json", write_npm_sbom)):
        try:
            write(folder / name)
        except NotAudited as reason:
            sys.stderr.write(f"error: {name} was not written: {reason}\n")
            return FOUND
        components = json.loads((folder / name).read_bytes())["components"]
        sys.stdout.write(f"{folder / name}: {len(components)} packages\n")
    return 0


def python_vulnerabilities() -> tuple[list[str], int]:
    """Return the vulnerabilities of the locked run-time packages, and the number of packages."""
    options = ("--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json")
    printed = run_tool("pip_audit", *options, "--requirement", str(RUN_LOCK))
    packages = parsed(printed, "dependencies")
    unknown = [each["name"] for each in packages if "skip_reason" in each]
    if unknown:  # the tool itself ends well then, and prints that nothing is known
        raise NotAudited(
            f"the package index knows nothing about {len(unknown)} of {len(packages)} of them"
            f" ({unknown[0]}, …): it has no vulnerability service; ask one that has"
        )
    lines = [
        f"{each['name']} {each['version']}: {one['id']}, fixed in {versions(one['fix_versions'])}"
        for each in packages
        for one in each["vulns"]
    ]
    return lines, len(packages)


def npm_vulnerabilities() -> tuple[list[str], int]:
    """Return the vulnerabilities of the packages that the contracts' lock names, and their number."""
    printed = run_npm("audit", "--json", "--package-lock-only")
    found: Mapping[str, Any] = parsed(printed, "vulnerabilities")
    lines = [f"{name} {each['range']}: {each['severity']}" for name, each in sorted(found.items())]
    return lines, len(npm_packages())


def write_python_sbom(file: Path) -> None:
    """Write the Python packages of a running installation; the same lock gives the same bytes."""
    about = ("--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application")
    form = ("--output-reproducible", "--output-format", "JSON", "--output-file", "-")
    printed = run_tool("cyclonedx_py", "requirements", str(RUN_LOCK), *about, *form)
    parsed(printed, "components")
    file.write_text(printed)


def write_npm_sbom(file: Path) -> None:
    """Write the packages that the contracts' lock names."""
    printed = run_npm("sbom", "--package-lock-only", "--sbom-format", "cyclonedx")
    parsed(printed, "components")
    file.write_text(printed)


def npm_packages() -> list[str]:
    """Return the folders of the packages that the contracts' lock names."""
    return [
        name
        for name in json.loads((CONTRACTS / "package-lock.json").read_bytes())["packages"]
        if name
    ]


def versions(names: Sequence[str]) -> str:
    """Return versions as words."""
    return ", ".join(names) or "no version"


def run_tool(module: str, *arguments: str) -> str:
    """Return what a tool of the audit prints; its packages are in a folder of their own."""
    environment = {**os.environ, "PYTHONPATH": str(VENV / AUDIT), "PYTHONWARNINGS": "ignore"}
    return output([str(PYTHON), "-m", module, *arguments], ROOT, environment)


def run_npm(*arguments: str) -> str:
    """Return what npm prints: that of this machine, or the one from the Python index."""
    if has_npm():
        return output(["npm", *arguments], CONTRACTS, os.environ)
    try:
        node, command = npm_of_the_index()
    except InstallationFailed as failure:
        raise NotAudited(f"there is no npm: {failure}") from None
    path = f"{node}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return output([*command, *arguments], CONTRACTS, {**os.environ, "PATH": path})


def output(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """Return the standard output of a command, or else one line of what it complains about."""
    try:
        ended = finished(command, folder, environment)
    except InstallationFailed as failure:
        raise NotAudited(str(failure)) from None
    if not ended.stdout.strip():
        lines = ended.stderr.strip().splitlines() or [f"{command[0]} printed nothing"]
        raise NotAudited(excerpt(lines[-1]))
    return ended.stdout


def parsed(printed: str, key: str) -> Any:
    """Return a part of the JSON that a tool printed, or else what the JSON complains about."""
    try:
        content = json.loads(printed)
    except ValueError:
        raise NotAudited(excerpt(printed)) from None
    if key not in content:
        raise NotAudited(excerpt(str(content.get("message", "an answer of an unknown form"))))
    return content[key]


def excerpt(text: str) -> str:
    """Return the beginning of a text, as one line."""
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT_CHARS else f"{line[:EXCERPT_CHARS]} …"


if __name__ == "__main__":
    sys.exit(main())
