"""Assignment of uploaded images to the event, its options and its teams, by form field name."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from foretell.domain.creation.payload import Payload
from foretell.domain.errors.families import FieldProblem, InvalidFields

EVENT_IMAGE: Final = "eventImage"
OPTION_IMAGE: Final = "optionImage:"
OPTION_IMAGES: Final = ("optionImages", "optionImages[]")
TEAM_LOGO: Final = "teamLogo:"


def is_image_field(name: str) -> bool:
    """Return whether a field of this name holds an image."""
    return name in {EVENT_IMAGE, *OPTION_IMAGES} or name.startswith((OPTION_IMAGE, TEAM_LOGO))


class Places(NamedTuple):
    """The places that a payload has for images.

    `option_ids` are in the order of the options; `icon_ids` have an image by id only.
    """

    option_ids: Sequence[str] = ()
    icon_ids: Collection[str] = ()
    logo_sides: Collection[str] | None = None
    required_sides: Collection[str] = ()


def places_of(payload: Payload) -> Places:
    """Return the places for images of a payload; a binary one has none but the event's."""
    keys = [market.key for market in payload.markets]
    sports = payload.sports
    if sports is None:
        return Places(keys if len(keys) > 1 else ())
    return Places(keys, sports.icon_ids, sports.logo_sides, sports.sides_without_logo)


def assign_images(names: Sequence[str], places: Places) -> dict[str, int]:
    """Return the index among the names of each image, by its field.

    Images without an option's id are for the options that no other image names, in their order.
    Refuses an image that belongs to no option and no team.
    """
    option_ids = places.option_ids
    known_ids = {*option_ids, *places.icon_ids}
    problems = [
        FieldProblem(name, "is an image of no option")
        for name in names
        if name.startswith(OPTION_IMAGE) and name.removeprefix(OPTION_IMAGE) not in known_ids
    ]
    problems += _logo_problems(names, places)
    ordered = [index for index, name in enumerate(names) if name in OPTION_IMAGES]
    unnamed = [option_id for option_id in option_ids if OPTION_IMAGE + option_id not in names]
    if len(ordered) > len(unnamed):
        wanted = f"must have at most {len(unnamed)} images, one for each option that no other image names"
        problems.append(FieldProblem(names[ordered[-1]], f"{wanted}, and has {len(ordered)}"))
    if EVENT_IMAGE not in names:
        problems.append(FieldProblem(EVENT_IMAGE, "is required"))
    if problems:
        raise InvalidFields(problems)
    by_order = {
        OPTION_IMAGE + option_id: index for option_id, index in zip(unnamed, ordered, strict=False)
    }
    by_name = {name: index for index, name in enumerate(names) if name not in OPTION_IMAGES}
    return by_order | by_name


def _logo_problems(names: Sequence[str], places: Places) -> Iterator[FieldProblem]:
    """Yield the logos that belong to no team, and those that a team lacks."""
    for name in names:
        if not name.startswith(TEAM_LOGO):
            continue
        if places.logo_sides is None:
            yield FieldProblem(name, "is for sports payloads only")
        elif name.removeprefix(TEAM_LOGO) not in places.logo_sides:
            yield FieldProblem(name, "is the logo of no team")
    for side in sorted(places.required_sides):
        if TEAM_LOGO + side not in names:
            yield FieldProblem(TEAM_LOGO + side, f"is required: the {side} team has no logo")
