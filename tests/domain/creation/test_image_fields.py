import pytest

from foretell.domain.creation.image_fields import assign_images, is_image_field
from foretell.domain.errors.families import InvalidFields


def problems(names: list[str], option_ids: list[str]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidFields) as refused:
        assign_images(names, option_ids)
    return [(problem["field"], problem["message"]) for problem in refused.value.details["problems"]]


@pytest.mark.parametrize(
    ("name", "is_image"),
    [
        ("eventImage", True),
        ("optionImage:a", True),
        ("optionImages", True),
        ("optionImages[]", True),
        ("teamLogo:home", True),
        ("payload", False),
        ("auth", False),
        ("eventImages", False),
    ],
)
def test_images_are_known_by_the_names_of_their_fields(name: str, *, is_image: bool) -> None:
    assert is_image_field(name) is is_image


def test_a_binary_market_has_the_event_image_alone() -> None:
    assert assign_images(["eventImage"], []) == {"eventImage": 0}


def test_images_are_assigned_in_the_order_of_the_options_under_both_names() -> None:
    names = ["optionImages", "eventImage", "optionImages[]"]

    assert assign_images(names, ["a", "b", "c"]) == {
        "eventImage": 1,
        "optionImage:a": 0,
        "optionImage:b": 2,
    }


def test_an_image_by_id_beats_one_by_order() -> None:
    names = ["eventImage", "optionImages", "optionImages", "optionImage:a"]

    assert assign_images(names, ["a", "b"]) == {
        "eventImage": 0,
        "optionImage:a": 3,
        "optionImage:b": 2,
    }


@pytest.mark.spec(30)
def test_the_event_s_image_is_required() -> None:
    assert problems([], []) == [("eventImage", "is required")]


@pytest.mark.parametrize(
    ("names", "option_ids", "expected"),
    [
        (["optionImage:x"], ["a"], [("optionImage:x", "is an image of no option")]),
        (["optionImage:"], ["a"], [("optionImage:", "is an image of no option")]),
        (["optionImage:a"], [], [("optionImage:a", "is an image of no option")]),
        (["optionImages[]"], [], [("optionImages[]", "are more images than options")]),
        (
            ["optionImages", "optionImages"],
            ["a"],
            [("optionImages", "are more images than options")],
        ),
        (["teamLogo:home"], ["a"], [("teamLogo:home", "is for sports payloads only")]),
    ],
)
def test_images_of_no_option_are_refused(
    names: list[str], option_ids: list[str], expected: list[tuple[str, str]]
) -> None:
    assert problems(["eventImage", *names], option_ids) == expected
