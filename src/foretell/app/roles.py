"""What a process of an installation may do, where its APIs are, and which keys that needs."""

import enum
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final


class Role(enum.StrEnum):
    """What a process may do."""

    TRADING = "trading"
    ENGINE = "engine"
    TREASURY = "treasury"
    CREATION = "creation"
    RELAYER = "relayer"
    DATA = "data"
    DISCOVERY = "discovery"
    SETTLEMENT = "settlement"
    INDEXER = "indexer"


ALL_ROLES: Final = frozenset(Role) - {Role.ENGINE, Role.TREASURY}
"""What one process does alone: its engine is in trading."""

PREFIX_BY_ROLE: Final[Mapping[Role, str]] = MappingProxyType(
    {
        Role.TRADING: "/clob",
        Role.CREATION: "/create-market",
        Role.RELAYER: "/relayer",
        Role.DATA: "/data",
        Role.DISCOVERY: "/discovery",
    }
)
"""The roles that serve an API, and where."""

KEYS_BY_ROLE: Final[Mapping[Role, Collection[str]]] = MappingProxyType(
    {
        Role.TRADING: ("master",),
        Role.ENGINE: ("master",),
        Role.TREASURY: ("master",),
        Role.CREATION: ("registrar", "storage"),
        Role.RELAYER: ("master", "relayer"),
        Role.SETTLEMENT: ("operator",),
    }
)
"""The keys that a role needs; the others read only."""
