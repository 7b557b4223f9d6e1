"""The packed client in TypeScript: the published vectors, and trades of every wallet and struct, in Node.js."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.edge.documents.test_generated_clients import node
from tests.examples.conftest import ROOT, WITHIN_S, Play, own_question
from tests.rigs.installation import Running
from tests.web.client_types import write_types

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.values.hexadecimal import ZERO_BYTES32
from foretell.runtime.files import locked
from foretell.sandbox.ready import Ready, read_ready

pytestmark = [pytest.mark.xdist_group("examples"), pytest.mark.usefixtures("folder")]

WEB = ROOT / "web"
PROGRAMS = Path(__file__).parent / "typescript"
VECTORS = ROOT / "docs" / "reference"
NEEDED = ("viem", "@noble", "ws")
"""The packages that npm would install beside the client; `ws` is what Node.js 20 lacks."""
OPTIONS = {"eoa": (), "safe": ("--safe",), "deposit wallet": ("--deposit-wallet",)}
BUILDER = f"0x{'ab' * 32}"
TRADER_NUMBER, OTHER_NUMBER = 4, 5
CASES = [("eoa", 1), ("eoa", 2), ("safe", 1), ("safe", 2), ("deposit wallet", 2)]
USE = """
import { type OrderDraft, Trader, type Placement } from "foretell-client";
import { privateKeyToAccount } from "viem/accounts";

export async function use(draft: OrderDraft): Promise<Placement["status"]> {
  const trader = await Trader.connect("http://127.0.0.1:8000", privateKeyToAccount("0x01"), { wallet: "safe" });
  return (await trader.place(draft)).status;
}
export const wrong: OrderDraft = { tokenId: "1", side: "HOLD", price: "0.4" };
"""


def run(*command: str | Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a program of Node.js to its end, whatever its exit code."""
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has installed the packed client, and what its description names."""
    project = tmp_path_factory.mktemp("typescript")
    with locked(
        WEB / "client"
    ):  # it is compiled in place, and other workers of the run do that too
        write_types()
        built = run(
            sys.executable, ROOT / "requirements" / "typescript_client.py", project, folder=ROOT
        )
    assert built.returncode == 0, built.stdout + built.stderr
    packages = project / "node_modules"
    packages.mkdir()
    shutil.unpack_archive(built.stdout.strip(), project)
    (project / "package").rename(packages / "foretell-client")
    described = json.loads((packages / "foretell-client" / "package.json").read_text())
    named = {name.partition("/")[0] for name in described["dependencies"]}
    assert named == set(NEEDED) - {"ws"}
    for name in NEEDED:
        (packages / name).symlink_to(WEB / "node_modules" / name)
    for program in PROGRAMS.glob("*.mjs"):
        shutil.copy(program, project)
    return project


def test_the_client_needs_no_framework_of_the_app(project: Path) -> None:
    sources = [
        path.read_text() for path in (project / "node_modules/foretell-client").rglob("*.js")
    ]
    assert len(sources) >= 10
    assert [text for text in sources if 'from "react' in text or "window." in text] == []


def test_the_client_meets_the_published_vectors(project: Path) -> None:
    done = run(
        node(),
        "vectors.mjs",
        VECTORS / "amount-vectors.json",
        VECTORS / "signing-vectors.json",
        folder=project,
    )
    amounts = json.loads((VECTORS / "amount-vectors.json").read_text())
    orders = json.loads((VECTORS / "signing-vectors.json").read_text())["orders"]
    compared = len(amounts["limit"]) + len(amounts["budget"]) + 2 * len(orders)
    assert done.stdout == f"{compared} compared\n", done.stdout + done.stderr


def test_a_program_is_checked_against_the_packed_types(project: Path) -> None:
    (project / "use.mts").write_text(USE)
    options = ("--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "use.mts")
    done = run(
        node(), WEB / "node_modules" / "typescript" / "bin" / "tsc", *options, folder=project
    )
    faults = [line for line in done.stdout.splitlines() if "error TS" in line]
    assert len(faults) == 1, done.stdout
    assert '"HOLD"' in faults[0]


@pytest.fixture
def ready(example_sandbox: Running) -> Ready:
    return read_ready(example_sandbox.data)


def key_of(ready: Ready, number: int) -> str:
    """Return the key of a trader, as the commands number them."""
    traders = [each for each in ready.accounts if each.role == AccountRole.TRADER]
    return traders[number - 1].private_key


def played(
    project: Path, running: Running, ready: Ready, market: dict[str, Any], case: tuple[str, int]
) -> dict[str, Any]:
    """Return what the program saw that traded for a wallet by a struct."""
    wallet, struct = case
    tokens = (market["token Yes"], market["token No"])
    line = (f"http://127.0.0.1:{running.port}", key_of(ready, TRADER_NUMBER), wallet, str(struct))
    done = run(node(), "trade.mjs", *line, key_of(ready, OTHER_NUMBER), *tokens, folder=project)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}".replace(" ", "-"))
def test_the_client_trades_for_every_wallet_by_every_struct(
    project: Path, command: Play, example_sandbox: Running, ready: Ready, case: tuple[str, int]
) -> None:
    wallet, struct = case
    question, slug = own_question(f"Does TypeScript trade for {wallet} {struct}?")
    command("market", "create", "--question", question, "--ends", "2035-06-01T12:00:00Z")
    market = json.loads(command("market", "show", slug, "--json"))
    own = ("--as", f"trader:{TRADER_NUMBER}", *OPTIONS[wallet])
    command("wallet", "deploy", *own)
    command("wallet", "fund", "50", *own)

    seen = played(project, example_sandbox, ready, market, case)

    order_id = seen["placed"]["orderID"]
    assert (seen["placed"]["status"], order_id) == ("live", seen["id"])
    assert (seen["again"]["orderID"], seen["open"]) == (order_id, [order_id])
    assert seen["announced"] == order_id
    assert (seen["bids"], seen["cost"]) == ([{"price": "0.37", "size": "10"}], "3700000")
    assert (seen["canceled"]["canceled"], seen["repeated"]["canceled"]) == ([order_id], [])
    assert (seen["second"], seen["taken"], seen["trade"]) == ("live", "matched", "CONFIRMED")
    assert seen["mine"] == ["CONFIRMED"]
    assert seen["funds"]["balance"] == "10000000"
    # A finding: the struct without a builder dropped it.
    assert seen["asked"] == (BUILDER if struct == 2 else "BuilderNotSigned")
    assert (seen["builder"], seen["built"]) == (BUILDER, "live")


def test_an_order_with_a_builder_or_metadata_is_signed_with_them_or_refused(
    project: Path, example_sandbox: Running, ready: Ready
) -> None:
    line = (f"http://127.0.0.1:{example_sandbox.port}", key_of(ready, TRADER_NUMBER))
    done = run(node(), "attributed.mjs", *line, ready.market.token_yes, folder=project)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    assert [sorted(set(each)) for each in seen["versions"]] == [[1, 2]] * len(seen["versions"])
    assert seen["both"] == {
        "builder": {"builder": BUILDER, "metadata": ZERO_BYTES32},
        "metadata": {"builder": ZERO_BYTES32, "metadata": BUILDER},
        "both": {"builder": BUILDER, "metadata": BUILDER},
        "none": {"builder": None, "metadata": None},
    }
    refused = (
        "a builder and metadata are signed by version 2 of the order struct alone: "
        "it is not accepted here"
    )
    assert seen["first"] == {
        "builder": refused,
        "metadata": refused,
        "both": refused,
        "none": {"builder": None, "metadata": None},
    }


@pytest.mark.parametrize(
    "page", ["docs/reference/typescript-client.md", "web/client/README.md"], ids=["page", "package"]
)
def test_the_block_of_a_page_trades(
    project: Path, command: Play, example_sandbox: Running, ready: Ready, page: str
) -> None:
    """The page's names `key` and `tokenId` are those of the sandbox; its sockets are those of Node.js 22."""
    own = ("--as", f"trader:{TRADER_NUMBER}", "--safe")
    command("wallet", "deploy", *own)
    command("wallet", "fund", "10", *own)
    (block,) = re.findall(
        r"^```js\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE
    )
    program = block.replace("http://127.0.0.1:8000", f"http://127.0.0.1:{example_sandbox.port}")
    given = {"key": key_of(ready, TRADER_NUMBER), "tokenId": ready.market.token_yes}
    names = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in given.items())
    socket = 'import { WebSocket as Socket } from "ws";\nglobalThis.WebSocket ??= Socket;\n'
    last = "console.log(placed.status, (await trader.openOrders({ id: placed.orderID })).length);\n"
    (project / "page.mjs").write_text(socket + names + program + last)
    done = run(node(), "page.mjs", folder=project)
    assert done.stdout.splitlines()[-1:] == ["live 0"], done.stdout + done.stderr
