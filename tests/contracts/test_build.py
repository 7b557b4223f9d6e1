import json
import re
import runpy
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.contracts.evm import ARTIFACTS, ROOT, own_artifact_fields
from tests.contracts.faulty.compiling import compiled

from foretell.domain.values.hexadecimal import keccak256

BUILD = ROOT / "contracts" / "build.py"
SOURCES = ROOT / "contracts" / "src"
SAFE_SINGLETON = "e51abdf814f8854941b9fe8e3a4f65cab4e7a4a8"
SAFE_INIT_CODE_HASH = "2bce2127ff07fb632d16c8347c4ebf501f4841168bed00d9e6ef715ddb6fcecf"
CODE_BYTES_MAX = 24_576  # EIP-170

report = runpy.run_path(str(BUILD))["report"]

CONTRACTS = sorted(path.stem for path in SOURCES.glob("*.vy"))


def test_the_committed_artifacts_match_the_sources() -> None:
    command = [sys.executable, str(BUILD), "--check"]
    done = compiled(command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_build_that_never_ends_is_ended_whether_it_works_or_waits() -> None:
    """How busy the machine is ends none: a build is bounded by its processor time."""
    loops = compiled([sys.executable, "-c", "while True: pass"], processor_s_max=1)
    assert loops.returncode == -signal.SIGKILL
    with pytest.raises(subprocess.TimeoutExpired):
        compiled([sys.executable, "-c", "import time; time.sleep(600)"], waiting_s_max=0.1)


def test_a_stale_a_missing_and_a_surplus_artifact_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    committed = {path.stem: path.read_text() for path in ARTIFACTS.glob("*.json")}
    shutil.copytree(ARTIFACTS, tmp_path, dirs_exist_ok=True)
    stale = tmp_path / "MarketRegistry.json"
    stale.write_text(stale.read_text().replace("cancun", "prague"))
    (tmp_path / "SafeFactory.json").unlink()
    (tmp_path / "Surplus.json").write_text("{}")
    assert report(tmp_path, committed) == 1
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "MarketRegistry",
        "SafeFactory",
        "Surplus",
    ]


def test_the_safe_proxy_is_that_of_existing_wallets() -> None:
    code = own_artifact_fields("SafeProxyCreationCode")["bytecode"][2:]
    init_code = bytes.fromhex(code + SAFE_SINGLETON.rjust(64, "0"))
    assert len(init_code) == 369 + 32
    assert keccak256(init_code).hex() == SAFE_INIT_CODE_HASH


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_contract_fits_the_code_limit_and_names_its_compiler(name: str) -> None:
    artifact = own_artifact_fields(name)
    assert artifact["name"] == name
    assert artifact["compiler"].startswith("vyper 0.4.3+")
    assert artifact["evmVersion"] == "cancun"
    assert re.fullmatch("0x[0-9a-f]{64}", artifact["sourceHash"])
    assert 0 < len(artifact["deployedBytecode"]) // 2 - 1 <= CODE_BYTES_MAX


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_typed_error_of_the_abi_is_in_the_code(name: str) -> None:
    artifact = own_artifact_fields(name)
    errors = [entry["name"] for entry in artifact["abi"] if entry["type"] == "error"]
    selectors = [keccak256(f"{error}()".encode())[:4].hex() for error in errors]
    code = artifact["deployedBytecode"] + artifact["bytecode"]
    assert len(selectors) == len(set(selectors))
    assert all(selector.strip("0") in code for selector in selectors)


def test_the_abi_has_the_logs_of_both_generations() -> None:
    abi = json.loads((ARTIFACTS / "Exchange.json").read_text())["abi"]
    names = [entry["name"] for entry in abi if entry["type"] == "event"]
    assert names.count("OrderFilled") == 2
    assert names.count("OrdersMatched") == 2
