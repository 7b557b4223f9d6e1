"""The documentation's site at `/docs`: its files and nothing else, under a policy that its own scripts pass."""

import base64
import hashlib
import importlib.util
import json
from collections.abc import AsyncIterator, Callable
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from litestar import Litestar
from typing_extensions import override

from foretell.edge.refusals import handlers
from foretell.edge.security_headers import SecureApplication
from foretell.web.refusals import web_body
from foretell.web.site.routes import site_routes

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"

SCRIPT = "document.title = 'Foretell'"
PAGE = f"<!doctype html><title>-</title><script>{SCRIPT}</script><script src='../a.js'></script>"


def pages_writer() -> Callable[[Path, Path], None]:
    """Return the function of the program that writes the pages, which is in no package."""
    spec = importlib.util.spec_from_file_location("pages", ROOT / "requirements/pages/build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.write_pages  # type: ignore[no-any-return]


write_pages = pages_writer()


def client_of(folder: Path, pages: Path | None = None) -> httpx.AsyncClient:
    routes = site_routes(folder, pages or folder)
    app = Litestar(routes, exception_handlers=handlers(web_body), openapi_config=None)
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
        assert "run make run" in answer.text
        assert (await http.get("/docs/index.html")).status_code == 404


async def test_the_pages_of_the_installation_are_served_until_there_is_a_site(
    tmp_path: Path,
) -> None:
    site, pages = tmp_path / "site", tmp_path / "pages"
    write_pages(pages, DOCS)
    async with client_of(site, pages) as http:
        answer = await http.get("/docs/tutorial/first-market.html")
        assert "<h1" in answer.text
        assert "script-src 'self' ;" in answer.headers["content-security-policy"]
        assert (await http.get("/docs/search.js")).status_code == 200
    site.mkdir()
    (site / "index.html").write_text(PAGE)
    async with client_of(site, pages) as http:
        assert (await http.get("/docs/index.html")).text == PAGE
        assert (await http.get("/docs/tutorial/first-market.html")).status_code == 404


class Anchors(HTMLParser):
    """The ids and the links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if named.get("id"):
            self.ids.add(str(named["id"]))
        for name in ("href", "src"):
            if named.get(name):
                self.links.add(str(named[name]))


def test_every_link_of_the_pages_leads_to_a_page_and_its_anchor(tmp_path: Path) -> None:
    write_pages(tmp_path, DOCS)
    found = {path: Anchors(path.read_text()) for path in tmp_path.rglob("*.html")}
    sources = [path for path in DOCS.rglob("*.md") if path.name != "README.md"]
    assert len(found) == len(sources) > 50
    dead = []
    for path, page in found.items():
        for link in page.links:
            if link.startswith(("http:", "https:", "data:")):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.is_file() or (anchor and anchor not in found[target].ids):
                dead.append(f"{path.relative_to(tmp_path)}: {link}")
    assert dead == []


def test_the_search_of_the_pages_has_every_section_once(tmp_path: Path) -> None:
    write_pages(tmp_path, DOCS)
    sections = json.loads((tmp_path / "search.json").read_text())
    paths = [each["path"] for each in sections]
    assert len(paths) == len(set(paths))
    by_path = {each["path"]: each for each in sections}
    assert by_path["reference/sdk.html#retries"]["title"] == "SDK: Retries"
    assert "Retry-After" in by_path["reference/sdk.html#retries"]["text"]
    for path in paths:
        name, _, anchor = path.partition("#")
        assert f'id="{anchor}"' in (tmp_path / name).read_text()
