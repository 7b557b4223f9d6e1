"""Routes of the documentation's site: `/docs`, beside the pages of the APIs at `/clob/docs` and so on.

The installation writes the documentation as plain pages into this package, and `make docs` builds a larger site, which is
served in their place. A wheel that is made afterwards has both.
"""

from pathlib import Path
from typing import Final

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from foretell.domain.errors.http import UnknownRoute
from foretell.edge.codec import AnyRequest
from foretell.edge.documents.pages import page_policy
from foretell.web.build_files import INDEX, read_build
from foretell.web.file_response import file_response

SITE: Final = Path(__file__).parent / "build"
PAGES: Final = Path(__file__).parent / "pages"
PATH: Final = "/docs"
MISSING: Final = (
    "The documentation is not built: run make run, and start again. The pages of the APIs are at /clob/docs,"
    " /create-market/docs, /relayer/docs, /data/docs and /discovery/docs; the sources are in docs/.\n"
)
HTML: Final = ".html"


def site_routes(folder: Path = SITE, pages: Path = PAGES) -> list[HTTPRouteHandler]:
    """Return the routes of the site in a folder, or else of the plain pages; without both, `/docs` says how to get them.

    The files are read once: nothing that appears in a folder later is served.
    """
    files = read_build(folder) or read_build(pages)
    policies = {
        name: page_policy(file.content) for name, file in files.items() if name.endswith(HTML)
    }

    @get(PATH, sync_to_thread=False)
    def get_start() -> Response[bytes]:
        if not files:
            return Response(MISSING.encode(), media_type="text/plain")
        return Response(b"", status_code=302, headers={"location": f"{PATH}/{INDEX}"})

    @get(f"{PATH}/{{path:path}}", sync_to_thread=True)
    def get_file(request: AnyRequest, path: FromPath[str]) -> Response[bytes]:
        name = path.removeprefix("/")
        file = files.get(name)
        if file is None:
            raise UnknownRoute(f"the documentation has no file {name[:100]}")
        return file_response(request, file, policies.get(name))

    return [get_start, get_file]
