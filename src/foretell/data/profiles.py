"""Profiles of the wallets in an answer."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from foretell.data.responses import ActivityResponse, HolderResponse, TradeResponse
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.trading.profiles import PublicProfile, load_profiles

Shown = TypeVar("Shown", TradeResponse, ActivityResponse, HolderResponse)


async def show_profiles(tx: Transaction, rows: Sequence[Shown]) -> list[Shown]:
    """Return rows with the profiles of their wallets."""
    by_wallet = await load_profiles(tx, {row.proxy_wallet.lower() for row in rows})
    return [show_profile(by_wallet, row) for row in rows] if by_wallet else list(rows)


def show_profile(by_wallet: Mapping[Address, PublicProfile], row: Shown) -> Shown:
    """Return a row with the profile of its wallet, if there is one."""
    profile = by_wallet.get(Address(row.proxy_wallet.lower()))
    if profile is None:
        return row
    shown = msgspec.structs.replace(
        row, name=profile.name, bio=profile.bio, profile_image=profile.image
    )
    if not isinstance(shown, HolderResponse):
        return shown
    return msgspec.structs.replace(shown, display_username_public=bool(profile.name))
