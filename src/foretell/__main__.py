"""The command: `foretell`, or `python -m foretell`."""

from foretell.runtime.core_dumps import forbid_core_dumps
from foretell.runtime.garbage_collection import search_rarely
from foretell.runtime.heaps import share_heaps


def run() -> None:
    """Run the command line. Searches for garbage are a fifth of the time that its imports take."""
    forbid_core_dumps()
    share_heaps()
    search_rarely()
    from foretell.cli.main import run as run_command  # noqa: PLC0415 - after the lines above

    run_command()


if __name__ == "__main__":
    run()
