"""Output of client commands: aligned columns for people, JSON for programs. Nothing is ever cut."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import typer

GAP = "  "


def print_rows(rows: Sequence[Mapping[str, Any]], *, is_json: bool) -> None:
    """Print rows with the same keys as columns, or as one JSON array."""
    if is_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("none")
        return
    names = list(rows[0])
    texts = [names, *([_text(row[name]) for name in names] for row in rows)]
    widths = [max(len(text[column]) for text in texts) for column in range(len(names))]
    for text in texts:
        cells = (cell.ljust(width) for cell, width in zip(text, widths, strict=True))
        typer.echo(GAP.join(cells).rstrip())


def print_fields(fields: Mapping[str, Any], *, is_json: bool) -> None:
    """Print fields one below the other, or as one JSON object."""
    if is_json:
        print_json(fields)
        return
    width = max(map(len, fields))
    for name, value in fields.items():
        typer.echo(f"{name.ljust(width)}{GAP}{_text(value)}")


def print_json(value: object) -> None:
    """Print a value as JSON."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def report(line: str) -> None:
    """Print a step on standard error, so that standard output has the result alone."""
    typer.echo(line, err=True)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return "" if value is None else str(value)
