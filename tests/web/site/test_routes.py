"""The documentation's site at `/docs`: its files and nothing else, under a policy that its own scripts pass."""

import base64
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from litestar import Litestar

from foretell.edge.refusals import handlers
from foretell.edge.security_headers import SecureApplication
from foretell.web.refusals import web_body
from foretell.web.site.routes import site_routes

pytestmark = pytest.mark.anyio

SCRIPT = "document.title = 'Foretell'"
PAGE = f"<!doctype html><title>-</title><script>{SCRIPT}</script><script src='../a.js'></script>"


def client_of(folder: Path) -> httpx.AsyncClient:
    app = Litestar(site_routes(folder), exception_handlers=handlers(web_body), openapi_config=None)
    transport = httpx.ASGITransport(app=SecureApplication(app))
    return httpx.AsyncClient(transport=transport, base_url="http://docs.example")


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    site = tmp_path / "site"
    (site / "tutorial").mkdir(parents=True)
    (site / "search").mkdir()
    (site / "index.html").write_text(PAGE)
    (site / "tutorial" / "first.html").write_text(PAGE)
    (site / "search" / "search_index.json").write_text("{}")
    (site / "page.md").write_text("not served")
    (tmp_path / "secret.txt").write_text("not served")
    async with client_of(site) as http:
        yield http


async def test_the_start_leads_to_the_first_page(http: httpx.AsyncClient) -> None:
    answer = await http.get("/docs")
    assert (answer.status_code, answer.headers["location"]) == (302, "/docs/index.html")
    assert (await http.get("/docs/index.html")).text == PAGE


@pytest.mark.parametrize("path", ["/docs/index.html", "/docs/tutorial/first.html"])
async def test_a_page_may_run_its_own_scripts_alone(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get(path)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = answer.headers["content-security-policy"]
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_index_of_the_search_is_served(http: httpx.AsyncClient) -> None:
    assert (await http.get("/docs/search/search_index.json")).json() == {}


@pytest.mark.parametrize(
    "path",
    [
        "/docs/page.md",
        "/docs/tutorial",
        "/docs/missing.html",
        "/docs/../secret.txt",
        "/docs/..%2fsecret.txt",
        "/docs/%2e%2e/secret.txt",
        "/docs//etc/passwd",
    ],
)
async def test_nothing_else_is_served(http: httpx.AsyncClient, path: str) -> None:
    assert (await http.get(path)).status_code == 404


async def test_without_a_site_the_start_says_how_it_is_built(tmp_path: Path) -> None:
    async with client_of(tmp_path / "none") as http:
        answer = await http.get("/docs")
        assert (answer.status_code, answer.headers["content-type"][:10]) == (200, "text/plain")
        assert "run make docs" in answer.text
        assert (await http.get("/docs/index.html")).status_code == 404
