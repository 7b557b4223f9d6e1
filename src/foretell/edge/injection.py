"""Dependency injection: the application holds its product's context in its state.

Routes do not depend on the context, so several applications can share them.
"""

from typing import Any, Final

from litestar.datastructures import State
from litestar.di import Provide

NAME: Final = "context"


def state_with(context: object) -> State:
    """Return the state of an application with this context."""
    return State({NAME: context})


def context_dependency() -> dict[str, Provide]:
    """Return the dependency that passes the context to handlers with a `context` argument."""
    return {NAME: Provide(_find_context, sync_to_thread=False)}


def _find_context(state: State) -> Any:
    return state[NAME]
