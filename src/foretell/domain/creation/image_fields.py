"""Assignment of uploaded images to the event and its options, by form field name."""

from collections.abc import Sequence
from typing import Final

from foretell.domain.errors.families import FieldProblem, InvalidFields

EVENT_IMAGE: Final = "eventImage"
OPTION_IMAGE: Final = "optionImage:"
OPTION_IMAGES: Final = ("optionImages", "optionImages[]")
TEAM_LOGO: Final = "teamLogo:"


def is_image_field(name: str) -> bool:
    """Return whether a field of this name holds an image."""
    return name in {EVENT_IMAGE, *OPTION_IMAGES} or name.startswith((OPTION_IMAGE, TEAM_LOGO))


def assign_images(names: Sequence[str], option_ids: Sequence[str]) -> dict[str, int]:
    """Return the index among the names of each image that is used, by its field.

    An image that names its option takes precedence over one assigned by order. Refuses an image
    that belongs to no option.
    """
    problems = [
        FieldProblem(name, "is an image of no option")
        for name in names
        if name.startswith(OPTION_IMAGE) and name.removeprefix(OPTION_IMAGE) not in option_ids
    ]
    problems += [
        FieldProblem(name, "is for sports payloads only")
        for name in names
        if name.startswith(TEAM_LOGO)
    ]
    ordered = [index for index, name in enumerate(names) if name in OPTION_IMAGES]
    if len(ordered) > len(option_ids):
        problems.append(FieldProblem(names[ordered[-1]], "are more images than options"))
    if EVENT_IMAGE not in names:
        problems.append(FieldProblem(EVENT_IMAGE, "is required"))
    if problems:
        raise InvalidFields(problems)
    by_order = {
        OPTION_IMAGE + option_id: index
        for option_id, index in zip(option_ids, ordered, strict=False)
    }
    by_name = {name: index for index, name in enumerate(names) if name not in OPTION_IMAGES}
    return by_order | by_name
