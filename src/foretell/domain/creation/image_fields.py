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
    """Return the index among the names of each image, by its field.

    Images without an option's id are for the options that no other image names, in their order.
    Refuses an image that belongs to no option.
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
