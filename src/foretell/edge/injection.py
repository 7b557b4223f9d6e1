"""How handlers come by what their product works with: the application carries it in its state.

Routes do not depend on the services, so the same ones can be given others.
"""

from typing import Any, Final

from litestar.datastructures import State
from litestar.di import Provide

NAME: Final = "services"


def carrying(services: object) -> State:
    """Return the state of an application that works with these services."""
    return State({NAME: services})


def carried() -> dict[str, Provide]:
    """Return the dependency that hands the services to every handler that asks for `services`."""
    return {NAME: Provide(_find_services, sync_to_thread=False)}


def _find_services(state: State) -> Any:
    return state[NAME]
