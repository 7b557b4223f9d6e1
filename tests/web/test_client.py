"""The client in TypeScript, which the web app uses: its types are those of the documents."""

import json
import subprocess
from pathlib import Path

from tests.edge.documents.apis import APIS
from tests.edge.documents.test_generated_clients import node
from tests.web.client_types import DEADLINE_S, ROOT, TYPES, write_types

from foretell.runtime.files import locked

WEB = ROOT / "web"
COMPILER = WEB / "node_modules" / "typescript" / "bin" / "tsc"
MISUSE = """
import type {{ Answer, Query }} from "{client}";
import type {{ Config }} from "{config}";

export const row: Answer<"data", "get", "/positions">[number]["size"] = "ten";
export const asked: Query<"data", "/positions">["limit"] = "ten";
export const path: Answer<"data", "get", "/nowhere"> = 1;
export const chain: Config["chainId"] = "31337";
"""


def test_the_app_uses_the_apis_as_their_documents_describe_them(tmp_path: Path) -> None:
    with locked(WEB / "client"):  # other workers of the run write there, too
        write_types()
    assert sorted(each.name for each in TYPES.glob("*.d.ts")) == [f"{api}.d.ts" for api in APIS]
    (tmp_path / "misuse.ts").write_text(
        MISUSE.format(client=WEB / "src" / "client" / "api", config=WEB / "src" / "lib" / "config")
    )
    (tmp_path / "tsconfig.json").write_text(
        json.dumps({"extends": str(WEB / "tsconfig.json"), "include": [str(WEB / "src"), "*.ts"]})
    )
    compiled = subprocess.run(
        [node(), COMPILER, "--noEmit", "--project", tmp_path / "tsconfig.json"],
        cwd=WEB,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    faults = [line.split("(")[0] for line in compiled.stdout.splitlines() if "error TS" in line]
    assert [Path(each).name for each in faults] == ["misuse.ts"] * 4, compiled.stdout
