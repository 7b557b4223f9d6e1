"""Public profiles of addresses, found by the address or by its Safe, and by the name.

The key of a name is the name without accents and capitals, as all texts are searched. Written by trading.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.folding import folded
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.lookups import among
from foretell.store.tables import profiles


class PublicProfile(NamedTuple):
    """What an address says of itself; empty texts are not said."""

    address: Address
    safe: Address
    name: str
    bio: str
    image: str
    updated_at_ms: int


LAST_CHARACTER: Final = chr(sys.maxunicode)
"""Sorts behind every character of a name."""

_WALLETS: Final = "wallets"
_PROFILES: Final = sa.select(*(profiles.c[name] for name in PublicProfile._fields)).where(
    sa.or_(profiles.c.address.in_(among(_WALLETS)), profiles.c.safe.in_(among(_WALLETS)))
)


async def record_profile(tx: Transaction, profile: PublicProfile) -> bool:
    """Store the profile of an address; return whether its name is nobody else's, whatever accents and case."""
    name_key = _key(profile.name) or None
    values = profile._asdict() | {"name_key": name_key}
    if name_key is not None:
        holder = await tx.scalar(
            sa.select(profiles.c.address).where(profiles.c.name_key == name_key)
        )
        if holder not in {None, profile.address}:
            return False
    if await tx.insert_new(profiles, **values):
        return True
    own = await tx.scalar(
        sa.select(profiles.c.address).where(profiles.c.address == profile.address)
    )
    if own is None:  # another address has just taken the name
        return False
    await tx.execute(
        profiles.update().where(profiles.c.address == profile.address).values(**values)
    )
    return True


async def load_named(tx: Transaction, name: str) -> PublicProfile | None:
    """Return the profile with this name, whatever accents and case, None if there is none."""
    wanted = sa.select(*(profiles.c[each] for each in PublicProfile._fields)).where(
        profiles.c.name_key == _key(name)
    )
    row = await tx.first(wanted)
    return None if row is None else PublicProfile._make(row)


async def load_named_like(tx: Transaction, prefix: str, limit: int) -> Sequence[PublicProfile]:
    """Return profiles whose names begin with a text, whatever accents and case, in the order of their folded names."""
    first = _key(prefix)
    if not first:
        return []
    key = profiles.c.name_key
    wanted = (
        sa.select(*(profiles.c[each] for each in PublicProfile._fields))
        .where(key >= first, key < first + LAST_CHARACTER)
        .order_by(key)
        .limit(limit)
    )
    return [PublicProfile._make(row) for row in await tx.all(wanted)]


def _key(name: str) -> str:
    """Return the key of a name: blanks around it do not count, as none are stored."""
    return folded(name.strip())


async def load_profiles(
    tx: Transaction, wallets: Collection[str]
) -> Mapping[Address, PublicProfile]:
    """Return the profiles of wallets, by wallet; those of wallets without one are left out."""
    wanted = set(wallets)
    if not wanted:
        return {}
    rows = await tx.all(_PROFILES, {_WALLETS: list(wanted)})
    found = [PublicProfile._make(row) for row in rows]
    return {
        wallet: profile
        for profile in found
        for wallet in (profile.address, profile.safe)
        if wallet in wanted
    }
