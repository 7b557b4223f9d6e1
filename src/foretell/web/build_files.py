"""The files of the built web app, and of the documentation's site, read once.

A file of `assets/` has the hash of its content in its name, so a browser keeps it for ever; all other
files are asked for again each time.
"""

import gzip
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Final

from foretell.domain.errors.command import WebBuildTooLarge

BUILD: Final = Path(__file__).parent / "build"
"""Where the sources in `web/` are built to; the wheel has it too."""
INDEX: Final = "index.html"
ASSETS: Final = "assets/"
BUILD_BYTES_MAX: Final = 16 * 1024 * 1024
COMPRESSED_FROM_BYTES: Final = 1024
MEDIA_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".html": "text/html",
        ".js": "text/javascript",
        ".css": "text/css",
        ".svg": "image/svg+xml",
        ".txt": "text/plain",
        ".woff2": "font/woff2",
        ".png": "image/png",
        ".json": "application/json",
        ".xml": "application/xml",
    }
)
LASTING: Final = "public, max-age=31536000, immutable"
ASKED_AGAIN: Final = "no-cache"


class BuildFile:
    """One file: its content, as it is and compressed, and the headers that describe it."""

    def __init__(self, name: str, content: bytes) -> None:
        self.content = content
        self.media_type = MEDIA_TYPES[Path(name).suffix]
        self.cache_control = LASTING if name.startswith(ASSETS) else ASKED_AGAIN

    @cached_property
    def compressed(self) -> bytes | None:
        """The content by gzip, None if that saves nothing worth it."""
        if len(self.content) < COMPRESSED_FROM_BYTES:
            return None
        return gzip.compress(self.content, mtime=0)


def read_build(folder: Path = BUILD) -> Mapping[str, BuildFile]:
    """Return the files by their path from the folder; none if the app is not built.

    Files of unknown types are left out: the browser gets nothing whose type we do not name.
    """
    if not (folder / INDEX).is_file():
        return MappingProxyType({})
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix in MEDIA_TYPES]
    size = sum(path.stat().st_size for path in paths)
    if size > BUILD_BYTES_MAX:
        raise WebBuildTooLarge(size, BUILD_BYTES_MAX)
    names = {path: path.relative_to(folder).as_posix() for path in paths}
    return MappingProxyType(
        {names[path]: BuildFile(names[path], path.read_bytes()) for path in paths}
    )
