"""Write the documentation as plain pages: FOLDER. `make up` serves them at `/docs`.

They have the navigation, the anchors and a search of their own, and no package but those that a running installation
has anyway. `make docs` builds the site with Material for MkDocs, which is served in their place (decision 24).
"""

import html
import itertools
import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

HERE: Final = Path(__file__).parent
DOCS: Final = HERE.parents[1] / "docs"
LEFT_OUT: Final = frozenset({"README.md"})
"""The index of the repository; the navigation is the pages' own."""
KINDS: Final = (
    ("tutorial", "Tutorial"),
    ("howto", "How-to"),
    ("reference", "Reference"),
    ("explanation", "Explanation"),
    ("decisions", "Decisions"),
)
COPIED: Final = frozenset({".json", ".svg", ".png"})
PAGE: Final = """\
<!doctype html>
<html lang="en" data-root="{root}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title} - Foretell</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{root}style.css">
<a class="skip" href="#content">Skip to the text</a>
<header>
<a href="{root}index.html">Foretell</a>
<input id="search" type="search" placeholder="Search" aria-label="Search the documentation" autocomplete="off">
<ul id="results" aria-live="polite"></ul>
</header>
<div class="layout">
<nav aria-label="Pages">
{navigation}
</nav>
<main id="content">
{body}
</main>
</div>
<script src="{root}search.js"></script>
</html>
"""

_SPACES: Final = re.compile(r"[-\s]+")
_NO_WORD: Final = re.compile(r"[^\w\s-]")


class Section(NamedTuple):
    """A heading with the text below it."""

    title: str
    path: str
    text: str


class Page(NamedTuple):
    """A page that was rendered."""

    path: str
    title: str
    body: str
    sections: Sequence[Section]


def main() -> int:
    """Write all pages into the folder of the first argument."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: requirements/pages/build.py FOLDER\n")
        return 2
    write_pages(Path(sys.argv[1]))
    return 0


def write_pages(target: Path, docs: Path = DOCS) -> None:
    """Write the pages of a folder of Markdown, their search and the files that they show, and nothing else."""
    shutil.rmtree(target, ignore_errors=True)
    sources = [path for path in sorted(docs.rglob("*.md")) if path.name not in LEFT_OUT]
    pages = [render(path, docs) for path in sources]
    for page in pages:
        file = target / page.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            PAGE.format(
                root="../" * page.path.count("/") or "./",
                title=html.escape(page.title),
                navigation=navigation(pages, page),
                body=page.body,
            )
        )
    for path in docs.rglob("*"):
        if path.suffix in COPIED:
            shutil.copyfile(path, target / path.relative_to(docs))
    for name in ("style.css", "search.js"):
        shutil.copyfile(HERE / name, target / name)
    sections = [section._asdict() for page in pages for section in page.sections]
    (target / "search.json").write_text(json.dumps(sections))


def render(path: Path, docs: Path) -> Page:
    """Return a page with an anchor for each heading, and with links to pages in place of those to sources."""
    parser = MarkdownIt("commonmark", {"highlight": highlighted}).enable("table")
    source = path.relative_to(docs)
    tokens = parser.parse(path.read_text())
    anchors = list(with_anchors(tokens))
    for token in tokens:
        for child in token.children or ():
            link(child, source)
    body = parser.renderer.render(tokens, parser.options, {})
    body = body.replace("<table>", '<div class="table"><table>').replace(
        "</table>", "</table></div>"
    )
    name = source.with_suffix(".html").as_posix()
    title = anchors[0][1] if anchors else source.stem
    return Page(name, title, body, list(sections_of(tokens, name, title)))


def highlighted(code: str, language: str, _: str) -> str:
    """Return code as HTML, with a class for each kind of word; the empty string leaves it as it is."""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return ""
    return highlight(code, lexer, HtmlFormatter(nowrap=True))


def slug(text: str, used: set[str]) -> str:
    """Return the anchor of a heading, as MkDocs makes it, so that the same links work in both."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    first = _SPACES.sub("-", _NO_WORD.sub("", plain).strip().lower())
    found, number = first, 0
    while found in used:
        number += 1
        found = f"{first}_{number}"
    used.add(found)
    return found


def plain_text(token: Token) -> str:
    """Return the words of a line without its marks."""
    return "".join(
        each.content for each in token.children or () if not each.type.startswith("html")
    )


def with_anchors(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """Give each heading its anchor and a link to it; yield both."""
    used: set[str] = set()
    for opening, inline in itertools.pairwise(tokens):
        if opening.type != "heading_open":
            continue
        text = plain_text(inline)
        anchor = slug(text, used)
        opening.attrSet("id", anchor)
        words = f'<a class="anchor" href="#{anchor}" aria-label="Link to this section">#</a>'
        inline.children = [*(inline.children or ()), Token("html_inline", "", 0, content=words)]
        yield anchor, text


def link(token: Token, source: Path) -> None:
    """Turn a link to another source into one to its page; one out of the pages goes to nothing."""
    if token.type == "link_open":
        href = str(token.attrGet("href"))
        path, mark, anchor = href.partition("#")
        if path.count("../") > len(source.parent.parts):
            token.attrs = {}
        elif path.endswith(".md") and ":" not in path:
            page = PurePosixPath(path).with_suffix(".html").as_posix()
            token.attrSet("href", f"{page}{mark}{anchor}")


def sections_of(tokens: Sequence[Token], path: str, title: str) -> Iterator[Section]:
    """Yield the headings of a page, each with the text up to the next one."""
    heading, anchor, texts = title, "", list[str]()
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            if texts:
                yield Section(heading, f"{path}{anchor}", " ".join(texts))
            words = plain_text(tokens[number + 1])
            heading = title if token.tag == "h1" else f"{title}: {words}"
            anchor, texts = f"#{token.attrGet('id')}", []
        elif token.type == "inline" and tokens[number - 1].type != "heading_open":
            texts.append(plain_text(token))
        elif token.type == "fence":
            texts.append(token.content)
    yield Section(heading, f"{path}{anchor}", " ".join(texts))


def navigation(pages: Sequence[Page], current: Page) -> str:
    """Return the list of all pages, with the current page's kind unfolded."""
    root = "../" * current.path.count("/") or "./"
    parts = []
    for folder, kind in KINDS:
        within = [page for page in pages if page.path.startswith(f"{folder}/")]
        is_open = current in within or (current.path == "index.html" and folder != "decisions")
        rows = "".join(
            f'<li><a href="{root}{page.path}"{" aria-current=page" if page is current else ""}>'
            f"{html.escape(page.title)}</a></li>"
            for page in within
        )
        opened = " open" if is_open else ""
        parts.append(f"<details{opened}><summary>{kind}</summary><ul>{rows}</ul></details>")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
