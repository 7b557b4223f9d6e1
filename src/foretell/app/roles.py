"""The roles of a process: the path of each API, and the keys that each role needs."""

import enum
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final


class KeyName(enum.StrEnum):
    """A key by the name of its setting."""

    MASTER = "master_key"
    OPERATOR = "operator_key"
    REGISTRAR = "registrar_key"
    RELAYER = "relayer_key"
    STORAGE = "storage_key"
    ADMIN = "admin_key"


class Role(enum.StrEnum):
    """One product or loop of an installation."""

    TRADING = "trading"
    ENGINE = "engine"
    TREASURY = "treasury"
    CREATION = "creation"
    RELAYER = "relayer"
    DATA = "data"
    DISCOVERY = "discovery"
    WEB = "web"
    SETTLEMENT = "settlement"
    INDEXER = "indexer"


ALL_ROLES: Final = frozenset(Role) - {Role.ENGINE, Role.TREASURY}
"""The roles of an installation in one process: trading includes its engine."""

SHARDED_ROLES: Final = frozenset({Role.TRADING, Role.ENGINE, Role.TREASURY})
"""The roles that open journals or send requests to engines, so that the number of shards concerns them."""

PREFIX_BY_ROLE: Final[Mapping[Role, str]] = MappingProxyType(
    {
        Role.TRADING: "/clob",
        Role.CREATION: "/create-market",
        Role.RELAYER: "/relayer",
        Role.DATA: "/data",
        Role.DISCOVERY: "/discovery",
        Role.WEB: "",
    }
)
"""The roles that serve HTTP, and their paths when a process serves several; the web app has all other paths."""

KEYS_BY_ROLE: Final[Mapping[Role, frozenset[KeyName]]] = MappingProxyType(
    {
        Role.TRADING: frozenset({KeyName.MASTER}),
        Role.ENGINE: frozenset({KeyName.MASTER}),
        Role.TREASURY: frozenset({KeyName.MASTER}),
        Role.CREATION: frozenset({KeyName.REGISTRAR, KeyName.STORAGE}),
        Role.RELAYER: frozenset({KeyName.MASTER, KeyName.RELAYER}),
        Role.DATA: frozenset(),
        Role.DISCOVERY: frozenset(),
        Role.WEB: frozenset(),
        Role.SETTLEMENT: frozenset({KeyName.OPERATOR}),
        Role.INDEXER: frozenset(),
    }
)


def prefixes_of(roles: Collection[Role]) -> dict[Role, str]:
    """Return the path of each API among the roles; a single API is served at the root."""
    served = [role for role in PREFIX_BY_ROLE if role in roles]
    return {role: "" if len(served) == 1 else PREFIX_BY_ROLE[role] for role in served}


def keys_of(roles: Collection[Role]) -> frozenset[KeyName]:
    """Return the keys that a process with these roles needs."""
    return frozenset().union(*(KEYS_BY_ROLE[role] for role in roles))
