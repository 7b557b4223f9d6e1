"""The end of a command that fails: one line on standard error, and an exit code."""

from typing import Final, NoReturn

from rich.console import Console
from rich.markup import escape

FAILED_CODE: Final = 1


def fail(message: str, code: int = FAILED_CODE) -> NoReturn:
    """Print a message in one line, and end the process."""
    console = Console(stderr=True)
    console.print(f"[red]error:[/] {escape(message)}", highlight=False, soft_wrap=True)
    raise SystemExit(code)
