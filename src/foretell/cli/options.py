"""Options that several commands have, and the settings that they change."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from foretell.cli.environment import unknown_variables
from foretell.domain.errors.command import UnknownSetting
from foretell.settings import Settings


def default_of(name: str) -> str:
    """Return the default of a setting, as the help of an option shows it."""
    return str(Settings.model_fields[name].default)


Data = Annotated[
    Path | None,
    typer.Option(help="The data folder.", show_default=default_of("data")),
]
Port = Annotated[
    int | None, typer.Option(help="Port of the APIs.", show_default=default_of("port"))
]
ChainPort = Annotated[
    int | None, typer.Option(help="Port of the dev chain.", show_default=default_of("chain_port"))
]


Shard = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Number of an engine in a separate process.",
        show_default="the engine in the trading process",
    ),
]


def settings_of(**given: Any) -> Settings:
    """Return the settings with the options that were given; a misspelled variable is refused."""
    unknown = unknown_variables(os.environ)
    if unknown:
        raise UnknownSetting(unknown)
    chosen = {name: value for name, value in given.items() if value is not None}
    return Settings(**chosen)
