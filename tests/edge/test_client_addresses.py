import pytest

from foretell.edge.client_addresses import FORWARDED_CHARS_MAX, UNKNOWN, ClientAddresses

PROXIES = ("10.0.0.0/8", "fd00::/8")


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("a socket", "a socket"),
        (None, UNKNOWN),
    ],
)
def test_the_other_end_of_the_connection_is_the_client(peer: str | None, client: str) -> None:
    addresses = ClientAddresses()
    assert [addresses.client(peer, "198.51.100.1") for _ in range(2)] == [client, client]
    assert not addresses.reads_forwarded


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("10.0.0.1", "198.51.100.1, 203.0.113.7", "203.0.113.7"),
        ("10.0.0.1", "198.51.100.1, 203.0.113.7,10.2.3.4", "203.0.113.7"),
        ("10.0.0.1", "10.9.9.9", "10.9.9.9"),
        ("fd00::1", "[2001:db8:1:2::9]", "2001:db8:1:2::/64"),
        ("203.0.113.7", "198.51.100.1", "203.0.113.7"),
        ("10.0.0.1", "someone, 203.0.113.7:80", "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "1" * (FORWARDED_CHARS_MAX + 1), "10.0.0.1"),
        ("a socket", "203.0.113.7", "a socket"),
    ],
)
def test_a_trusted_proxy_names_the_client_and_nobody_else_does(
    peer: str, forwarded: str | None, client: str
) -> None:
    addresses = ClientAddresses(PROXIES)
    assert [addresses.client(peer, forwarded) for _ in range(2)] == [client, client]
    assert addresses.reads_forwarded
