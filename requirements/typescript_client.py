"""Build the package `foretell-client` of the client in TypeScript: FOLDER.

The sources are `web/client`, which the web app uses too. The types of the APIs are those of `make client-types`. The
compiler is the web app's, and npm is this machine's or the one of the Python index.
"""

import shutil
import sys
from pathlib import Path
from typing import Final

from install import LOCKS, ROOT, WEB, has_npm, is_node_new_enough, npm_of_the_index, packages, run

CLIENT: Final = WEB / "client"


def main() -> int:
    """Compile and pack the client into the folder of the first argument, and print the package's path."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: requirements/typescript_client.py FOLDER\n")
        return 2
    if not (CLIENT / "types").is_dir():
        sys.stderr.write("error: the types of the APIs are not written: run make client-types\n")
        return 1
    target = Path(sys.argv[1]).resolve()
    target.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(CLIENT / "dist", ignore_errors=True)
    shutil.copyfile(ROOT / "LICENSE", CLIENT / "LICENSE")
    folder, node, npm = tools()
    compiler = str(WEB / "node_modules" / "typescript" / "bin" / "tsc")
    run([*node, compiler, "--project", "tsconfig.json"], CLIENT, folder)
    printed = run([*npm, "pack", "--silent", "--pack-destination", str(target)], CLIENT, folder)
    sys.stdout.write(f"{target / printed.split()[-1]}\n")
    return 0


def tools() -> tuple[Path | None, list[str], list[str]]:
    """Return the folder to put first on the path, and the commands of Node.js and of npm."""
    if is_node_new_enough() and has_npm():
        return None, ["node"], ["npm"]
    packages(LOCKS / "node.txt")
    folder, npm = npm_of_the_index()
    return folder, [str(folder / "node")], npm


if __name__ == "__main__":
    sys.exit(main())
