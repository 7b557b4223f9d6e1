import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest
from litestar import Litestar
from tests.conftest import NPM_FOLDER

from foretell.data.routes import build_app
from foretell.edge.documents import pages
from foretell.edge.documents.openapi import document_of
from foretell.edge.documents.pages import MISSING, SCRIPT
from foretell.runtime.threads import run_in_thread

pytestmark = pytest.mark.anyio

PAGE = "http://data/docs"


def client_of(npm_folder: Path | None) -> httpx.AsyncClient:
    context: object = None
    transport = httpx.ASGITransport(build_app(context, npm_folder))  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url="http://data")


@pytest.fixture(scope="module")
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(NPM_FOLDER) as client:
        yield client


async def test_the_page_names_the_document_and_the_script_beside_it(
    http: httpx.AsyncClient,
) -> None:
    page = await http.get("/docs")
    (document,) = re.findall(r'data-url="([^"]+)"', page.text)
    (script,) = re.findall(r'<script src="([^"]+)"', page.text)
    shown = await http.get(urljoin(PAGE, document))
    assert shown.json()["openapi"] == "3.1.0"
    assert (await http.get(urljoin(PAGE, script))).status_code == 200


async def test_the_page_names_no_other_host_and_forbids_it(http: httpx.AsyncClient) -> None:
    page = await http.get("/docs")
    assert "//" not in re.sub(r"data:[^\"']*", "", page.text)
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "http" not in policy


async def test_the_page_permits_only_the_scripts_within_it_and_ours(
    http: httpx.AsyncClient,
) -> None:
    page = await http.get("/docs")
    within = re.findall(r"<script(?![^>]*src=)[^>]*>(.*?)</script>", page.text, re.DOTALL)
    digests = [hashlib.sha256(script.encode()).digest() for script in within]
    (scripts,) = re.findall(r"script-src ([^;]*);", page.headers["content-security-policy"])
    permitted = {f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests}
    assert set(scripts.split()) == {"'self'", *permitted}


async def test_the_script_is_that_of_the_package_and_kept_by_the_browser(
    http: httpx.AsyncClient,
) -> None:
    script = await http.get("/docs/script.js")
    assert script.content == (NPM_FOLDER / SCRIPT).read_bytes()
    assert script.headers["content-type"].startswith("text/javascript")
    assert "max-age" in script.headers["cache-control"]


@pytest.mark.parametrize("folder", [None, Path("nowhere")])
async def test_a_page_without_its_script_says_so_in_one_line(folder: Path | None) -> None:
    async with client_of(folder) as client:
        page = await client.get("/docs")
        script = await client.get("/docs/script.js")
    assert (page.status_code, page.text) == (200, MISSING)
    assert MISSING.count("\n") == 1
    assert script.status_code == 404


@pytest.mark.parametrize("path", ["/docs", "/schema/openapi.json"])
async def test_a_document_that_is_asked_for_again_and_again_is_encoded_once(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request took a thread, which held the interpreter, so that orders waited."""
    calls: list[object] = []

    async def run_counted(act: Callable[[], object]) -> object:
        calls.append("thread")
        return await run_in_thread(act)

    def counted(app: Litestar) -> dict[str, Any]:
        calls.append("document")
        return document_of(app)

    monkeypatch.setattr(pages, "run_in_thread", run_counted)
    monkeypatch.setattr(pages, "document_of", counted)
    async with client_of(NPM_FOLDER) as client:
        answers = await asyncio.gather(*(client.get(path) for _ in range(20)))
        answers += [await client.get(path, headers={"host": "another"})]
    assert calls == ["thread", "document"]
    assert {each.status_code for each in answers} == {200}
    assert len({each.content for each in answers}) == 1
    assert len({each.headers.get("content-security-policy") for each in answers}) == 1


async def test_a_page_whose_script_is_installed_later_is_shown(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        assert (await client.get("/docs")).text == MISSING
        (tmp_path / SCRIPT).parent.mkdir(parents=True)
        (tmp_path / SCRIPT).write_text("1;")
        assert "api-reference" in (await client.get("/docs")).text
        assert (await client.get("/docs/script.js")).text == "1;"
