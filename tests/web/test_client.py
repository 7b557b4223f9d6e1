"""The client in TypeScript, which the web app uses: its types are those of the documents."""

import subprocess

from tests.edge.documents.apis import APIS
from tests.edge.documents.test_generated_clients import node
from tests.web.client_types import DEADLINE_S, ROOT, TYPES, write_types

WEB = ROOT / "web"
COMPILER = WEB / "node_modules" / "typescript" / "bin" / "tsc"
MISUSE = """
import type { Answer, Query } from "../src/client/api";
import type { Config } from "../src/lib/config";

export const row: Answer<"data", "get", "/positions">[number]["size"] = "ten";
export const asked: Query<"data", "/positions">["limit"] = "ten";
export const path: Answer<"data", "get", "/nowhere"> = 1;
export const chain: Config["chainId"] = "31337";
"""


def test_the_app_uses_the_apis_as_their_documents_describe_them() -> None:
    write_types()
    assert sorted(each.name for each in TYPES.glob("*.d.ts")) == [f"{api}.d.ts" for api in APIS]
    misuse = TYPES / "misuse.ts"
    misuse.write_text(MISUSE)
    try:
        compiled = subprocess.run(
            [node(), COMPILER, "--noEmit"],
            cwd=WEB,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
    finally:
        misuse.unlink()
    faults = [line.split("(")[0] for line in compiled.stdout.splitlines() if "error TS" in line]
    assert faults == ["types/misuse.ts"] * 4, compiled.stdout
