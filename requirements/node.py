"""Run a script by Node.js in a folder with npm packages: FOLDER SCRIPT [ARGUMENT …].

Node.js is this machine's if it is new enough, else the one of the Python index that the installation uses.
"""

import os
import sys

from install import LOCKS, ROOT, is_node_new_enough, npm_of_the_index, packages


def main() -> None:
    """Become the script."""
    folder, script, *arguments = sys.argv[1:]
    os.chdir(ROOT / folder)
    os.execvp(*command(script, arguments))  # noqa: S606 - no shell is wanted


def command(path: str, arguments: list[str]) -> tuple[str, list[str]]:
    """Return the program and its arguments, the program's name first."""
    if is_node_new_enough():
        return "node", ["node", path, *arguments]
    packages(LOCKS / "node.txt")
    node = str(npm_of_the_index()[0] / "node")
    return node, [node, path, *arguments]


if __name__ == "__main__":
    main()
