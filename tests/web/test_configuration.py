import pytest

from foretell.web.configuration import ApiUrls, origin_of, policy_of

PAGE = "https://exchange.example"


def sources(policy: str, directive: str) -> list[str]:
    """Return the sources of one directive of a policy."""
    rows = (row.split() for row in policy.split(";"))
    return next(row[1:] for row in rows if row[0] == directive)


def test_a_page_whose_apis_are_its_own_host_may_reach_no_other() -> None:
    policy = policy_of(ApiUrls().all(), PAGE)
    assert sources(policy, "default-src") == ["'none'"]
    assert sources(policy, "script-src") == ["'self'"]
    assert sources(policy, "connect-src") == ["'self'", "wss://exchange.example"]
    assert sources(policy, "frame-ancestors") == ["'none'"]


def test_an_api_elsewhere_is_named_with_its_streams() -> None:
    apis = ApiUrls(trading="https://clob.example/v1")
    found = sources(policy_of(apis.all(), PAGE), "connect-src")
    wanted = ["'self'", "https://clob.example", "wss://clob.example", "wss://exchange.example"]
    assert found == wanted
    assert "https://clob.example" in sources(policy_of(apis.all(), PAGE), "img-src")


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("/clob", ""),
        ("", ""),
        ("http://[::1]:8000/clob", "http://[::1]:8000"),
        ("javascript:alert(1)", ""),
    ],
)
def test_the_origin_of_a_url(url: str, origin: str) -> None:
    assert origin_of(url) == origin
