"""Write the types of the APIs' documents for the web app's client: `tests/run.py web.client_types`."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.edge.documents.apis import APIS, BUILD_APPS
from tests.edge.documents.test_generated_clients import TYPESCRIPT, node
from tests.rigs.applications import openapi_document

ROOT: Final = Path(__file__).parents[2]
TYPES: Final = ROOT / "web" / "client" / "types"
DEADLINE_S: Final = 900
"""Only against a hang: to check the whole app takes a busy machine minutes."""


def write_types(folder: Path = TYPES) -> None:
    """Write a file of types for each API; one that is the same stays as it is."""
    folder.mkdir(exist_ok=True)
    generator = TYPESCRIPT / "openapi-typescript" / "bin" / "cli.js"
    with tempfile.TemporaryDirectory() as made:
        for api in APIS:
            source, target = Path(made) / f"{api}.json", Path(made) / f"{api}.d.ts"
            source.write_text(json.dumps(openapi_document(BUILD_APPS[api])))
            command = (node(), generator, source, "--output", target)
            subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE_S)
            written = folder / target.name
            if not written.exists() or written.read_bytes() != target.read_bytes():
                written.write_bytes(target.read_bytes())


if __name__ == "__main__":
    write_types()
