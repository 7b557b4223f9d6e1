"""Dependency injection: the application carries its product's context in its state.

Routes do not depend on the context, so the same ones can be given another.
"""

from typing import Any, Final

from litestar.datastructures import State
from litestar.di import Provide

NAME: Final = "context"


def state_with(context: object) -> State:
    """Return the state of an application that works with this context."""
    return State({NAME: context})


def context_dependency() -> dict[str, Provide]:
    """Return the dependency that hands the context to every handler that asks for `context`."""
    return {NAME: Provide(_find_context, sync_to_thread=False)}


def _find_context(state: State) -> Any:
    return state[NAME]
