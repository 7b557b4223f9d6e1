"""Hooks of the documentation's site: the order of its tabs, and links to files that are no pages."""

import re
from pathlib import PurePosixPath
from typing import Any, Final

ORDER: Final = ("Home", "Tutorial", "Howto", "Reference", "Explanation", "Decisions")
TITLES: Final = {"Howto": "How-to"}
_OUTSIDE: Final = re.compile(r"\[([^\]]+)\]\((\.\.[^)\s]*)\)")


def on_nav(nav: Any, **_: Any) -> Any:
    """Put the kinds of pages in the order in which a newcomer needs them."""
    nav.items.sort(key=lambda entry: _place(entry.title))
    for entry in nav.items:
        entry.title = TITLES.get(entry.title, entry.title)
    return nav


def _place(title: str | None) -> int:
    return ORDER.index(title) if title in ORDER else 0


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leave the words of a link that goes to a file of the repository outside of the pages."""
    folder = PurePosixPath(page.file.src_uri).parent

    def without_link(found: "re.Match[str]") -> str:
        ups = found[2].count("../")
        return found[1] if ups > len(folder.parts) else found[0]

    return _OUTSIDE.sub(without_link, markdown)
