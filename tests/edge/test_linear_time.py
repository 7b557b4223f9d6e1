"""Patterns, searches and names of clients over long texts made to be slow.

The texts are so long that work which grows with their square would take minutes. It is done in a process that may use
a processor for several times what it takes alone, since others slow it down, and is killed beyond that.
"""

import asyncio
import resource
import sys

import pytest

pytestmark = pytest.mark.anyio

CPU_S_MAX = 30

PRELUDE = """
import importlib, pkgutil, re, sys
import foretell
LENGTH = 100_000
UNITS = ["a", "1", "_", "-", " ", "/", ".", '"', "[", "<", "<script ", "a-", "a_", "1.", "0x", "http:/", "\\\\\\\\", "\\u0301",
         "\\u0315\\u0300", "\\u00df", "a" * 19 + " ", "token_id="]
TEXTS = [unit * (LENGTH // len(unit)) + end for unit in UNITS for end in ("", "!", "\\n")]
"""

MATCHED = (
    PRELUDE
    + """
SEARCHED = {"rate_limiter._SLASHES", "slugs._OTHERS", "document_fields._CONTROLS",
            "node_messages._URL", "rpc._HALTED"}
searched = set()
count = 0
for module in pkgutil.walk_packages(foretell.__path__, "foretell."):
    if module.name.startswith(("foretell.bench", "foretell.__main__", "foretell.store.migrations")):
        continue
    for name, value in vars(importlib.import_module(module.name)).items():
        if isinstance(value, re.Pattern):
            count += 1
            for text in TEXTS:
                text = text.encode() if isinstance(value.pattern, bytes) else text
                value.match(text)
                value.fullmatch(text)
                place = module.name.rpartition(".")[2] + "." + name
                if place in SEARCHED:
                    searched.add(place)
                    value.sub(text[:0], text)
assert count > 25, count
assert searched == SEARCHED
"""
)

NAMED = (
    PRELUDE
    + """
from foretell.discovery.folded_texts import contains_all
from foretell.discovery.search_index import words_of
from foretell.domain.values.folding import folded
from foretell.domain.errors.node_messages import redacted
from foretell.domain.errors.families import ForetellError
from foretell.domain.values.document_fields import Fields
from foretell.domain.values.strict_json import parse_json
from foretell.domain.creation.slug_fields import read_slug
from foretell.edge.codec import decode
for text in TEXTS:
    assert contains_all("x" * 100_000, words_of(text)) in {True, False}
    redacted(text)
    problems = []
    read_slug(Fields({"slug": text}, "", problems), "slug")
    assert problems
    for read in (parse_json, lambda raw: decode(raw, dict)):
        try:
            read(text.encode())
        except ForetellError:
            pass
"""
)


@pytest.mark.case("G-07")
@pytest.mark.parametrize("script", [MATCHED, NAMED], ids=["patterns", "searches and names"])
async def test_long_texts_made_to_be_slow_take_linear_time(script: str) -> None:
    """A finding: a query of marks upon marks took the square of its length to fold."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        script,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX)),
    )
    _, error = await process.communicate()
    assert process.returncode == 0, error.decode()[-2000:]
