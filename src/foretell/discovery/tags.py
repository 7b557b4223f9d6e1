"""Tags: a list, and single ones by id or slug."""

from typing import Final

from foretell.discovery.context import DiscoveryContext
from foretell.discovery.pages import ASCENDING, LIMIT, OFFSET, TAG_ORDER, read_page
from foretell.discovery.paths import parse_id, parse_slug
from foretell.discovery.render import render_tag
from foretell.discovery.responses import TagResponse
from foretell.domain.errors.http import UnknownRecord
from foretell.edge.parameters import ignored, optional_boolean
from foretell.edge.query import Query
from foretell.store.queries.catalog_filters import load_tag_ids
from foretell.store.queries.tags import CatalogTag, load_tag_by_slug, load_tags

IS_CAROUSEL: Final = optional_boolean(
    "is_carousel", "true matches nothing: no tag is in a carousel"
)
TAGS_IGNORED: Final = ignored("include_template", "include_chat", "creator", "mirror", "locale")
TAGS_PARAMETERS: Final = (LIMIT, OFFSET, TAG_ORDER, ASCENDING, IS_CAROUSEL, TAGS_IGNORED)
ONE_TAG_PARAMETERS: Final = (ignored("include_template", "mirror", "locale"),)
RELATED_TAGS_PARAMETERS: Final = (*ONE_TAG_PARAMETERS, ignored("omit_empty", "status"))


async def list_tags(context: DiscoveryContext, query: Query) -> list[TagResponse]:
    """Return a page of tags."""
    page = read_page(query, TAG_ORDER)
    has_carousel = query.read(IS_CAROUSEL)
    query.read(TAGS_IGNORED)
    query.check_known()
    if has_carousel:
        return []
    async with context.database.public_reading() as tx:
        found = await load_tag_ids(tx, page)
        return [render_tag(tag) for tag in await load_tags(tx, [row.row_id for row in found])]


async def find_tag(context: DiscoveryContext, query: Query, id_text: str) -> TagResponse:
    """Return the tag of an id."""
    query.check(ONE_TAG_PARAMETERS)
    return render_tag(await _find_tag(context, id_text))


async def find_tag_by_slug(context: DiscoveryContext, query: Query, slug: str) -> TagResponse:
    """Return the tag of a slug."""
    query.check(ONE_TAG_PARAMETERS)
    return render_tag(await _find_tag_by_slug(context, slug))


async def check_tag(context: DiscoveryContext, query: Query, id_text: str) -> None:
    """Refuse an id that belongs to no tag."""
    query.check(RELATED_TAGS_PARAMETERS)
    await _find_tag(context, id_text)


async def check_tag_by_slug(context: DiscoveryContext, query: Query, slug: str) -> None:
    """Refuse a slug that belongs to no tag."""
    query.check(RELATED_TAGS_PARAMETERS)
    await _find_tag_by_slug(context, slug)


async def _find_tag(context: DiscoveryContext, id_text: str) -> CatalogTag:
    async with context.database.public_reading() as tx:
        tags = await load_tags(tx, [parse_id(id_text)])
    if not tags:
        raise UnknownRecord("id")
    return tags[0]


async def _find_tag_by_slug(context: DiscoveryContext, slug: str) -> CatalogTag:
    async with context.database.public_reading() as tx:
        tag = await load_tag_by_slug(tx, parse_slug(slug))
    if tag is None:
        raise UnknownRecord("slug")
    return tag
