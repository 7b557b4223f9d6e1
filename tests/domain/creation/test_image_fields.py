import pytest
from tests.rigs.payloads import (
    ABSENT,
    AWAY,
    a_payload,
    a_sports_market,
    a_sports_payload,
    a_team,
    event_fields,
)

from foretell.domain.creation.image_fields import Places, assign_images, is_image_field, places_of
from foretell.domain.errors.families import InvalidFields


def problems(names: list[str], option_ids: list[str]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidFields) as refused:
        assign_images(names, Places(option_ids))
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
    assert assign_images(["eventImage"], Places()) == {"eventImage": 0}


def test_images_are_assigned_in_the_order_of_the_options_under_both_names() -> None:
    names = ["optionImages", "eventImage", "optionImages[]"]

    assert assign_images(names, Places(["a", "b", "c"])) == {
        "eventImage": 1,
        "optionImage:a": 0,
        "optionImage:b": 2,
    }


@pytest.mark.spec(31, 32)
def test_ordered_images_fill_the_options_that_have_none_by_id() -> None:
    names = ["eventImage", "optionImages", "optionImages", "optionImage:a"]

    assert assign_images(names, Places(["a", "b", "c"])) == {
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


def test_only_an_event_of_several_markets_has_places_for_their_images() -> None:
    assert places_of(a_payload()) == Places()
    assert places_of(a_payload(**event_fields(count=2))) == Places(["town-1", "town-2"])


def sports_places(home: object = ABSENT, away: object = ABSENT) -> Places:
    """Return the places of a game of one market whose teams have these logos."""
    teams = [a_team(logo=home), a_team(AWAY, logo=away)]
    market = a_sports_market(iconAssetKey="ball")
    return places_of(a_sports_payload(template=ABSENT, markets=[market], teams=teams))


LINK = "https://logos.example/team.png"


@pytest.mark.spec(27, 33)
@pytest.mark.parametrize(
    ("home", "away", "uploaded"),
    [
        (LINK, LINK, []),
        (ABSENT, LINK, ["teamLogo:home"]),
        (LINK, ABSENT, ["teamLogo:away"]),
        (ABSENT, ABSENT, ["teamLogo:away", "teamLogo:home"]),
        (LINK, LINK, ["teamLogo:home"]),
    ],
)
def test_a_logo_is_given_or_uploaded(home: object, away: object, uploaded: list[str]) -> None:
    names = ["eventImage", *uploaded]

    found = assign_images(names, sports_places(home, away))

    assert found == {name: index for index, name in enumerate(names)}


@pytest.mark.spec(27, 33)
@pytest.mark.parametrize(
    ("home", "away", "uploaded", "missing"),
    [
        (ABSENT, LINK, [], ["home"]),
        (LINK, ABSENT, ["teamLogo:home"], ["away"]),
        (ABSENT, ABSENT, ["teamLogo:home"], ["away"]),
        (ABSENT, ABSENT, [], ["away", "home"]),
    ],
)
def test_a_missing_logo_is_refused_by_its_side(
    home: object, away: object, uploaded: list[str], missing: list[str]
) -> None:
    with pytest.raises(InvalidFields) as refused:
        assign_images(["eventImage", *uploaded], sports_places(home, away))

    assert refused.value.details["problems"] == [
        {"field": f"teamLogo:{side}", "message": f"is required: the {side} team has no logo"}
        for side in missing
    ]


@pytest.mark.spec(33)
@pytest.mark.parametrize("name", ["teamLogo:guest", "teamLogo:", "teamLogo:Home"])
def test_a_logo_of_no_team_is_refused(name: str) -> None:
    with pytest.raises(InvalidFields) as refused:
        assign_images(["eventImage", name], sports_places(LINK, LINK))

    assert refused.value.details["problems"] == [
        {"field": name, "message": "is the logo of no team"}
    ]


@pytest.mark.spec(29)
def test_a_sports_market_has_an_image_by_its_id_or_by_its_icon() -> None:
    names = ["eventImage", "optionImage:ball", "optionImage:first-goal-1"]

    assert assign_images(names, sports_places(LINK, LINK)) == {
        "eventImage": 0,
        "optionImage:ball": 1,
        "optionImage:first-goal-1": 2,
    }
