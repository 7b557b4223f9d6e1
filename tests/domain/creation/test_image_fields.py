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


@pytest.mark.spec(32)
def test_ordered_images_fill_the_options_that_have_none_by_id() -> None:
    names = ["eventImage", "optionImages", "optionImages", "optionImage:a"]

    assert assign_images(names, ["a", "b", "c"]) == {
        "eventImage": 0,
        "optionImage:a": 3,
        "optionImage:b": 1,
        "optionImage:c": 2,
    }
    assert problems(names, ["a", "b"]) == [("optionImages", surplus(1, 2))]


def surplus(most: int, count: int) -> str:
    return (
        f"must have at most {most} images, one for each option that no other image names, and has"
        f" {count}"
    )


@pytest.mark.spec(30)
def test_the_event_s_image_is_required() -> None:
    assert problems([], []) == [("eventImage", "is required")]


@pytest.mark.parametrize(
    ("names", "option_ids", "expected"),
    [
        (["optionImage:x"], ["a"], [("optionImage:x", "is an image of no option")]),
        (["optionImage:"], ["a"], [("optionImage:", "is an image of no option")]),
        (["optionImage:a"], [], [("optionImage:a", "is an image of no option")]),
        (["optionImages[]"], [], [("optionImages[]", surplus(0, 1))]),
        (
            ["optionImages", "optionImages"],
            ["a"],
            [("optionImages", surplus(1, 2))],
        ),
        (["teamLogo:home"], ["a"], [("teamLogo:home", "is for sports payloads only")]),
    ],
)
def test_images_of_no_option_are_refused(
    names: list[str], option_ids: list[str], expected: list[tuple[str, str]]
) -> None:
    assert problems(["eventImage", *names], option_ids) == expected
