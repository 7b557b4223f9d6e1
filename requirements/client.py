"""Build the package `foretell-client`: the SDK and the part of the domain that it imports, and no server.

The sources are those of Foretell itself; only the description of the package differs. Use either
package in an environment, not both: they have the same modules.
"""

import ast
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = ROOT / "src"
NEEDS: Final = (
    "coincurve",
    "cryptography",
    "httpx",
    "msgspec",
    "safe-pysha3",
    "typing-extensions",
    "websockets",
)
"""The packages that the SDK imports; their versions are those of Foretell."""
DESCRIPTION: Final = """
[build-system]
requires = ["flit_core>=3.12,<4"]
build-backend = "flit_core.buildapi"

[project]
name = "foretell-client"
version = "{version}"
description = "The client of Foretell exchanges: trade, watch, create and resolve markets."
requires-python = "{python}"
license = "Apache-2.0"
license-files = ["LICENSE"]
dependencies = [{dependencies}]

[tool.flit.module]
name = "foretell"
"""


def main() -> int:
    """Write the wheel into the folder of the first argument, and print its path."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: requirements/client.py FOLDER\n")
        return 2
    target = Path(sys.argv[1]).resolve()
    tree = target / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for module in sorted(modules_of_the_sdk()):
        copy = tree / "src" / module.relative_to(SOURCE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(module, copy)
    (tree / "src" / "foretell" / "py.typed").touch()
    shutil.copyfile(ROOT / "LICENSE", tree / "LICENSE")
    (tree / "pyproject.toml").write_text(description())
    build = (
        "import sys; from flit_core.buildapi import build_wheel; print(build_wheel(sys.argv[1]))"
    )
    built = subprocess.run(
        [sys.executable, "-c", build, str(target)],
        cwd=tree,
        check=True,
        capture_output=True,
        text=True,
    )
    sys.stdout.write(f"{target / built.stdout.strip()}\n")
    return 0


def description() -> str:
    """Return the description of the package, with Foretell's version and its pins."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = [
        pin
        for pin in project["dependencies"]
        if pin.partition(">")[0].partition("=")[0].strip() in NEEDS
    ]
    assert len(pins) == len(NEEDS), pins
    return DESCRIPTION.format(
        version=project["version"],
        python=project["requires-python"],
        dependencies=", ".join(f'"{pin}"' for pin in pins),
    )


def modules_of_the_sdk() -> set[Path]:
    """Return the files of the SDK, of everything that it imports, and of the packages around them."""
    found: set[Path] = set()
    open_modules = sorted((SOURCE / "foretell" / "sdk").rglob("*.py"))
    while open_modules:
        module = open_modules.pop()
        if module in found:
            continue
        found.add(module)
        open_modules += [parent / "__init__.py" for parent in packages_of(module)]
        for name in imports_of(module):
            open_modules += files_of(name)
    return found


def packages_of(module: Path) -> list[Path]:
    """Return the folders of the packages that a module is in."""
    inside = module.relative_to(SOURCE).parents
    return [SOURCE / parent for parent in inside if parent != Path()]


def imports_of(module: Path) -> list[str]:
    """Return the names of our modules that a module imports."""
    names = []
    for node in ast.walk(ast.parse(module.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names += [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        elif isinstance(node, ast.Import):
            names += [each.name for each in node.names]
    return [name for name in names if name.partition(".")[0] == "foretell"]


def files_of(name: str) -> list[Path]:
    """Return the file of a module or a package; a name within a module has none."""
    path = SOURCE / name.replace(".", "/")
    return [each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()]


if __name__ == "__main__":
    sys.exit(main())
