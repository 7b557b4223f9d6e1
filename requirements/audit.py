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
    WEB,
    InstallationFailed,
    finished,
    has_npm,
    npm_of_the_index,
)

NPM_LOCK: Final = "package-lock.json"
INSTALLED: Final = "node_modules/"
"""The folders of all packages of npm but our own have it."""
SHIPPED: Final = {
    LOCKS / "run.txt": "python.cdx.json",
    LOCKS / "parquet.txt": "python-parquet.cdx.json",
    CONTRACTS / NPM_LOCK: "npm.cdx.json",
    WEB / NPM_LOCK: "npm-web.cdx.json",
}
"""The locks of what an installation runs or sends to browsers, each with the name of its bill of materials."""
FOUND: Final = 1
MISUSED: Final = 2
UNKNOWN: Final = 3
"""The exit code when a registry did not answer for every package."""
EXCERPT_CHARS: Final = 120


class NotAudited(Exception):
    """A registry that did not answer for every package of a lock; the text says why, in one line."""


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
    """Print the known vulnerabilities of the packages of each lock file."""
    codes = []
    for lock in SHIPPED:
        name = lock.relative_to(ROOT)
        audit = npm_vulnerabilities if is_of_npm(lock) else python_vulnerabilities
        try:
            found, packages = audit(lock)
        except NotAudited as reason:
            sys.stderr.write(f"not audited: {name}: {reason}\n")
            codes.append(UNKNOWN)
            continue
        for line in found:
            sys.stdout.write(f"{name}: {line}\n")
        sys.stdout.write(f"{name}: {len(found)} known vulnerabilities in {packages} packages\n")
        codes.append(FOUND if found else 0)
    return FOUND if FOUND in codes else max(codes)


def report_sbom(folder: Path) -> int:
    """Write a bill of materials for each lock file, and print where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for lock, name in SHIPPED.items():
        try:
            printed = npm_sbom(lock) if is_of_npm(lock) else python_sbom(lock)
            components = parsed(printed, "components")
        except NotAudited as reason:
            sys.stderr.write(f"error: {name} was not written: {reason}\n")
            return FOUND
        (folder / name).write_text(printed)
        sys.stdout.write(f"{folder / name}: {len(components)} packages\n")
    return 0


def is_of_npm(lock: Path) -> bool:
    """Return whether a lock file is npm's."""
    return lock.name == NPM_LOCK


def python_vulnerabilities(lock: Path) -> tuple[list[str], int]:
    """Return the vulnerabilities of the packages of a Python lock, and the number of packages."""
    options = ("--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json")
    printed = run_tool("pip_audit", *options, "--requirement", str(lock))
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


def npm_vulnerabilities(lock: Path) -> tuple[list[str], int]:
    """Return the vulnerabilities of the packages of a lock of npm, and the number of packages."""
    printed = run_npm(lock.parent, "audit", "--json", "--package-lock-only")
    found: Mapping[str, Any] = parsed(printed, "vulnerabilities")
    lines = [f"{name} {each['range']}: {each['severity']}" for name, each in sorted(found.items())]
    return lines, len(npm_packages(lock))


def python_sbom(lock: Path) -> str:
    """Return the bill of materials of a Python lock; the same lock gives the same text."""
    about = ("--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application")
    form = ("--output-reproducible", "--output-format", "JSON", "--output-file", "-")
    return run_tool("cyclonedx_py", "requirements", str(lock), *about, *form)


def npm_sbom(lock: Path) -> str:
    """Return the bill of materials of a lock of npm."""
    return run_npm(lock.parent, "sbom", "--package-lock-only", "--sbom-format", "cyclonedx")


def npm_packages(lock: Path) -> list[str]:
    """Return the folders of the packages that npm installs by a lock, without links to our own."""
    return [
        folder
        for folder, package in json.loads(lock.read_bytes())["packages"].items()
        if INSTALLED in folder and not package.get("link")
    ]


def versions(names: Sequence[str]) -> str:
    """Return versions as words."""
    return ", ".join(names) or "no version"


def run_tool(module: str, *arguments: str) -> str:
    """Return what a tool of the audit prints; its packages are in a folder of their own."""
    environment = {**os.environ, "PYTHONPATH": str(VENV / AUDIT), "PYTHONWARNINGS": "ignore"}
    return output([str(PYTHON), "-m", module, *arguments], ROOT, environment)


def run_npm(folder: Path, *arguments: str) -> str:
    """Return what npm prints in a folder: that of this machine, or the one from the Python index."""
    if has_npm():
        return output(["npm", *arguments], folder, os.environ)
    try:
        node, command = npm_of_the_index()
    except InstallationFailed as failure:
        raise NotAudited(f"there is no npm: {failure}") from None
    path = f"{node}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return output([*command, *arguments], folder, {**os.environ, "PATH": path})


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
