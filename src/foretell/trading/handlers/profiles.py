"""The public profile of an address: its name, its words about itself, and its image."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec

from foretell.domain.errors.families import FieldProblem, InvalidFields
from foretell.domain.errors.order import NameTaken
from foretell.domain.exchange.order import SignatureType
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.store.public_reads.places import ReadKind
from foretell.store.trading.profiles import PublicProfile, load_profiles, record_profile
from foretell.trading.context import TradingContext

NAME_CHARACTERS_MAX: Final = 40
BIO_CHARACTERS_MAX: Final = 500
IMAGE_CHARACTERS_MAX: Final = 500

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]*\Z")


class ProfileBody(msgspec.Struct):
    """A profile; what is absent or empty is not shown."""

    name: str = ""
    bio: str = ""
    image: str = ""


class ProfileRecord(msgspec.Struct, frozen=True):
    """The profile of an address."""

    address: str
    name: str
    bio: str
    image: str


async def set_profile(
    context: TradingContext, address: Address, body: ProfileBody
) -> ProfileRecord:
    """Replace the profile of an address, or refuse."""
    name, bio, image = (text.strip() for text in (body.name, body.bio, body.image))
    _check(name, bio, image)
    profile = PublicProfile(
        address=address,
        safe=context.wallets.by_signature_type(address, SignatureType.SAFE),
        name=name,
        bio=bio,
        image=image,
        updated_at_ms=context.now_ms(),
    )
    async with context.database.writing() as tx:
        is_free = await record_profile(tx, profile)
    if not is_free:
        raise NameTaken
    return _record(address, {address: profile})


async def find_profile(context: TradingContext, address: Address) -> ProfileRecord:
    """Return the profile of an address; its texts are empty if it has none."""
    async with context.database.public_reading(ReadKind.OWN) as tx:
        return _record(address, await load_profiles(tx, [address]))


def _record(address: Address, by_wallet: Mapping[Address, PublicProfile]) -> ProfileRecord:
    profile = by_wallet.get(address)
    texts = ("", "", "") if profile is None else (profile.name, profile.bio, profile.image)
    return ProfileRecord(checksum_address(address), *texts)


def _check(name: str, bio: str, image: str) -> None:
    """Refuse texts that are too long, or that a page could take for something else."""
    problems = []
    if name and (len(name) > NAME_CHARACTERS_MAX or not _NAME.match(name)):
        wanted = "letters, digits, spaces, dots, hyphens and underscores, a letter or digit first"
        problems.append(FieldProblem("name", f"must have at most {NAME_CHARACTERS_MAX} {wanted}"))
    if len(bio) > BIO_CHARACTERS_MAX or not all(each.isprintable() or each == "\n" for each in bio):
        wanted = f"must have at most {BIO_CHARACTERS_MAX} printable characters"
        problems.append(FieldProblem("bio", wanted))
    if image and not _is_link(image):
        wanted = f"must be an https link of at most {IMAGE_CHARACTERS_MAX} characters"
        problems.append(FieldProblem("image", wanted))
    if problems:
        raise InvalidFields(problems)


def _is_link(text: str) -> bool:
    """Return whether a text is a plain https link; it is never fetched."""
    if len(text) > IMAGE_CHARACTERS_MAX or not text.isascii() or not text.isprintable():
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    has_host = parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc
    return has_host and not set(text) & set(" \"'<>\\`")
