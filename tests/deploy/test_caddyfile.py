"""The Caddyfile says the same as the configuration of nginx, which is the one that runs in tests.

Caddy is no package of Debian's, so this compares texts.
"""

import re

import pytest
from tests.deploy.rig import CONFIGURATION, DEPLOY

NGINX = CONFIGURATION.read_text()
CADDY = (DEPLOY / "Caddyfile").read_text()
REFUSALS = re.compile(r'\{"error":.*?null\}\}')


def settings(text: str) -> str:
    """Return the text without its comments."""
    return re.sub(r"(^|\s)#.*", "", text)


def test_both_serve_the_same_name_from_the_same_place() -> None:
    assert "server_name exchange.example;" in NGINX
    assert re.findall(r"^(\S+) \{$", CADDY, re.MULTILINE) == [
        "exchange.example",
        "http://exchange.example",
    ]
    (upstream,) = re.findall(r"server (\S+:\d+);", NGINX)
    assert re.findall(r"reverse_proxy (\S+) \{", CADDY) == [upstream]


def test_both_refuse_with_the_same_bodies() -> None:
    """Caddy cannot bound the connections of a client."""
    of_nginx = {each for each in REFUSALS.findall(NGINX) if "too_many_connections" not in each}
    assert set(REFUSALS.findall(CADDY)) == of_nginx
    assert "location = /metrics {" in NGINX
    assert "handle /metrics {" in CADDY


def test_both_answer_with_the_same_header() -> None:
    (nginx,) = set(re.findall(r'add_header Strict-Transport-Security "(.*?)"', NGINX))
    assert re.findall(r'header Strict-Transport-Security "(.*?)"', CADDY) == [nginx]


@pytest.mark.parametrize(
    ("nginx", "caddy"),
    [
        (r"client_max_body_size (\d+)m;", r"max_size (\d+)MiB"),
        (r"client_header_timeout (\d+)s;", r"read_header (\d+)s"),
        (r"(?<!_)keepalive_timeout (\d+)s;\n", r"idle (\d+)s"),
        (r"keepalive_timeout (\d+)s;  #", r"keepalive (\d+)s"),
        (r"proxy_connect_timeout (\d+)s;", r"dial_timeout (\d+)s"),
        (r"proxy_send_timeout (\d+)s;", r"write_timeout (\d+)s"),
        (r"proxy_read_timeout (\d+)s;", r"\sread_timeout (\d+)s"),
    ],
)
def test_both_have_the_same_limits(nginx: str, caddy: str) -> None:
    (limit,) = re.findall(nginx, NGINX)
    assert re.findall(caddy, CADDY) == [limit]


def test_heads_have_the_same_limit() -> None:
    (count, size) = re.findall(r"large_client_header_buffers (\d+) (\d+)k;", NGINX)[0]
    assert re.findall(r"max_header_size (\d+)KiB", CADDY) == [str(int(count) * int(size))]


def test_caddy_is_left_to_name_the_client_and_to_pass_all_headers() -> None:
    """Both are what Caddy does by default."""
    assert not re.search(r"trusted_proxies|header_up|header_down|redir", settings(CADDY))


@pytest.mark.parametrize("text", [NGINX, CADDY], ids=["nginx", "caddy"])
def test_only_present_versions_of_tls_are_spoken(text: str) -> None:
    named = re.findall(r"tlsv?(\d\.\d)\b", text.lower())
    assert sorted(named) == ["1.2", "1.3"]


def test_braces_are_balanced() -> None:
    plain = re.sub(r"`.*?`", "", settings(CADDY))
    assert plain.count("{") == plain.count("}")
