"""Public profiles, which their owners set at the trading API."""

from foretell.discovery.context import DiscoveryContext
from foretell.discovery.responses import PublicProfileResponse
from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.http import UnknownRecord
from foretell.domain.values.hexadecimal import checksum_address, parse_address
from foretell.domain.values.instants import iso_time
from foretell.store.database import Transaction
from foretell.store.trading.profiles import PublicProfile, load_named_like, load_profiles


async def find_profile(context: DiscoveryContext, address: str) -> PublicProfileResponse:
    """Return the profile of an address or of its wallet, or refuse."""
    try:
        wanted = parse_address(address)
    except MalformedHex as error:
        raise UnknownRecord("address") from error
    async with context.database.public_reading() as tx:
        found = (await load_profiles(tx, [wanted])).get(wanted)
    if found is None:
        raise UnknownRecord("address")
    return render_profile(found)


async def find_profiles(tx: Transaction, name: str, limit: int) -> list[PublicProfileResponse]:
    """Return the profiles whose names begin with a text, in the order of their names."""
    return [render_profile(found) for found in await load_named_like(tx, name, limit)]


def render_profile(found: PublicProfile) -> PublicProfileResponse:
    """Return a profile as the API has it."""
    return PublicProfileResponse(
        name=found.name,
        pseudonym="",
        bio=found.bio,
        profile_image=found.image,
        proxy_wallet=checksum_address(found.safe),
        base_address=checksum_address(found.address),
        display_username_public=bool(found.name),
        updated_at=iso_time(found.updated_at_ms),
    )
