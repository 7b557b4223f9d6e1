"""A small synchronous client of a chain, for the tests of the contracts.

`Evm` is a client of a node with automining that allows sending from any address. `Contract` encodes
and decodes by ABI. A revert raises `Reverted` with the name of the typed error.
"""

import itertools
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

import pytest
from coincurve import PrivateKey
from eth_abi.abi import decode, encode
from tests.rigs.chain_snapshots import EMPTY_POOL, POOL_CHECK_S

from foretell.domain.values.hexadecimal import keccak256

ROOT: Final = Path(__file__).parents[2]
COMMITTED: Final = ROOT / "src" / "foretell" / "chain" / "artifacts"
# Tests of mutants name a folder of other artifacts.
ARTIFACTS: Final = Path(os.environ.get("FORETELL_TEST_ARTIFACTS", COMMITTED))
NPM: Final = ROOT / "contracts" / "node_modules" / "@gnosis.pm"
CONDITIONAL_TOKENS: Final = (
    NPM / "conditional-tokens-contracts" / "build" / "contracts" / "ConditionalTokens.json"
)
SAFE_ARTIFACTS: Final = NPM / "safe-contracts" / "build" / "artifacts" / "contracts"

ANY_SENDER: Final = True
WHOLE_TRANSACTIONS: Final = False
RECEIPT_POLL_S: Final = 0.001
ANSWER_WITHIN_S: Final = 30
IDLE_S_MAX: Final = 3
RECEIPT_POLLS_MAX: Final = 5_000
POOL_CHECKS_MAX: Final = 1_000
TX_GAS_MAX: Final = 30_000_000
ERROR_STRING_SELECTOR: Final = keccak256(b"Error(string)")[:4]

Abi = Sequence[Mapping[str, Any]]


class Reverted(Exception):
    """A revert of a contract; `name` is its typed error, or the text of its reason."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(name or "no data")
        self.data = data
        self.name = name


@contextmanager
def reverts(name: str) -> Iterator[None]:
    """Expect a revert with this typed error or text."""
    with pytest.raises(Reverted) as caught:
        yield
    assert caught.value.name == name


@dataclass(frozen=True, slots=True)
class Actor:
    """A key and its address."""

    key: bytes
    address: str


@dataclass(frozen=True, slots=True)
class Log:
    address: str
    topics: tuple[bytes, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Receipt:
    is_success: bool
    gas_used: int
    contract_address: str
    logs: tuple[Log, ...]


@dataclass(frozen=True, slots=True)
class Artifact:
    abi: Abi
    bytecode: bytes


class Evm:
    """A client of one node, without overhead, for a hundred thousand requests."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=ANSWER_WITHIN_S)
        self._asked_at_s = 0.0
        self._ids = itertools.count(1)
        self._funded: set[str] = set()
        self.error_names: dict[bytes, str] = {}

    def __enter__(self) -> Self:
        self.rpc("anvil_autoImpersonateAccount", ANY_SENDER)
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def rpc(self, method: str, *params: object) -> Any:
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        answer = self._ask(body)
        if (error := answer.get("error")) is None:
            return answer["result"]
        if "revert" in error["message"].lower():
            raise self._reverted(bytes.fromhex((error.get("data") or "0x")[2:]))
        raise AssertionError((method, error))

    def _ask(self, body: dict[str, object]) -> Any:
        if time.monotonic() - self._asked_at_s > IDLE_S_MAX:
            self._connection.close()  # the next request opens it again
        head = {"content-type": "application/json"}
        self._connection.request("POST", "/", json.dumps(body), head)
        answer = json.loads(self._connection.getresponse().read())
        self._asked_at_s = time.monotonic()
        return answer

    def _reverted(self, data: bytes) -> Reverted:
        if data[:4] == ERROR_STRING_SELECTOR:
            return Reverted(data, decode(["string"], data[4:], strict=False)[0])
        return Reverted(data, self.error_names.get(data[:4], data.hex()))

    def actor(self, name: str) -> Actor:
        """Return the account of a name, with a balance for gas."""
        actor = an_actor(name)
        self.fund(actor.address)
        return actor

    def fund(self, address: str) -> None:
        if address not in self._funded:
            self.rpc("anvil_setBalance", address, hex(10**24))
            self._funded.add(address)

    def transact(self, sender: str, to: str | None, data: bytes) -> Receipt:
        receipt = self.attempt(sender, to, data)
        if not receipt.is_success:
            call = {"from": sender, "to": to, "data": "0x" + data.hex(), "gas": hex(TX_GAS_MAX)}
            self.rpc("eth_call", call, "latest")
            raise AssertionError(("reverted once, and not again", receipt))
        return receipt

    def attempt(self, sender: str, to: str | None, data: bytes) -> Receipt:
        """Send a transaction that may fail."""
        self.fund(sender)
        call = {"from": sender, "data": "0x" + data.hex(), "gas": hex(TX_GAS_MAX)}
        call |= {"to": to} if to is not None else {}
        receipt = self._mined(self.rpc("eth_sendTransaction", call))
        return Receipt(
            is_success=int(receipt["status"], 16) == 1,
            gas_used=int(receipt["gasUsed"], 16),
            contract_address=receipt["contractAddress"] or "",
            logs=tuple(
                Log(
                    address=log["address"],
                    topics=tuple(bytes.fromhex(topic[2:]) for topic in log["topics"]),
                    data=bytes.fromhex(log["data"][2:]),
                )
                for log in receipt["logs"]
            ),
        )

    def _mined(self, tx_hash: str) -> dict[str, Any]:
        """Return the receipt, which a node with automining may have only a moment later."""
        for _ in range(RECEIPT_POLLS_MAX):
            receipt: dict[str, Any] | None = self.rpc("eth_getTransactionReceipt", tx_hash)
            if receipt is not None:
                return receipt
            time.sleep(RECEIPT_POLL_S)
        raise AssertionError(("no receipt", tx_hash))

    def deploy(self, artifact: Artifact, *args: object, sender: str | None = None) -> "Contract":
        types = _types(_constructor(artifact.abi).get("inputs", ()))
        init_code = artifact.bytecode + encode(types, args)
        deployer = sender or self.actor("deployer").address
        receipt = self.transact(deployer, None, init_code)
        return self.at(receipt.contract_address, artifact.abi)

    def install(self, address: str, artifact: Artifact, *args: object) -> "Contract":
        """Run the constructor in place, so that the contract is at a given address."""
        types = _types(_constructor(artifact.abi).get("inputs", ()))
        init_code = artifact.bytecode + encode(types, args)
        deployer = self.actor("deployer").address
        self.rpc("anvil_setCode", address, "0x" + init_code.hex())
        call = {"from": deployer, "to": address, "gas": hex(TX_GAS_MAX)}
        runtime = self.rpc("eth_call", call, "latest")
        self.transact(deployer, address, b"")
        self.rpc("anvil_setCode", address, runtime)
        self.rpc("anvil_setNonce", address, "0x1")
        return self.at(address, artifact.abi)

    def at(self, address: str, abi: Abi) -> "Contract":
        """Return the contract, and register its typed errors."""
        for entry in abi:
            if entry["type"] == "error":
                self.error_names[_selector(entry)] = entry["name"]
        return Contract(self, address, abi)

    def now(self) -> int:
        return int(self.rpc("eth_getBlockByNumber", "latest", WHOLE_TRANSACTIONS)["timestamp"], 16)

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Revert all changes made inside the context."""
        snapshot = self.rpc("evm_snapshot")
        funded = set(self._funded)
        try:
            yield
        finally:
            self._empty_pool()
            assert self.rpc("evm_revert", snapshot)
            self._funded = funded

    def _empty_pool(self) -> None:
        """Wait until the pool is empty; see `tests/rigs/chain_snapshots.py`."""
        for _ in range(POOL_CHECKS_MAX):
            if self.rpc("txpool_status") == EMPTY_POOL:
                return
            time.sleep(POOL_CHECK_S)
        raise AssertionError("transactions are pending")


class Contract:
    """A contract at an address, called by ABI.

    A function is given by its name, or by its signature when the contract has two of that name.
    """

    def __init__(self, evm: Evm, address: str, abi: Abi) -> None:
        self.evm = evm
        self.address = address
        self.abi = abi
        self._function_by_name: dict[str, Mapping[str, Any]] = {}
        for entry in abi:
            if entry["type"] == "function":
                self._function_by_name.setdefault(entry["name"], entry)
                self._function_by_name[_signature(entry)] = entry

    def calldata(self, name: str, *args: object) -> bytes:
        entry = self._function_by_name[name]
        return _selector(entry) + encode(_types(entry["inputs"]), args)

    def call(self, name: str, *args: object, sender: str | None = None) -> Any:
        """Return the result of the function: one value, or a tuple of several."""
        call = {"to": self.address, "data": "0x" + self.calldata(name, *args).hex()}
        call |= {"from": sender} if sender is not None else {}
        answer = bytes.fromhex(self.evm.rpc("eth_call", call, "latest")[2:])
        values = decode(_types(self._function_by_name[name]["outputs"]), answer)
        return values[0] if len(values) == 1 else values

    def send(self, name: str, *args: object, sender: str) -> Receipt:
        return self.evm.transact(sender, self.address, self.calldata(name, *args))

    def topic(self, signature: str) -> bytes:
        """Return the topic of the log with this signature in the ABI."""
        return keccak256(_signature(self._event(signature)).encode())

    def _event(self, signature: str) -> Mapping[str, Any]:
        return next(
            entry
            for entry in self.abi
            if entry["type"] == "event" and _signature(entry) == signature
        )

    def logs(self, receipt: Receipt, signature: str) -> list[dict[str, Any]]:
        """Return the fields of this contract's logs of a signature such as `Paused(address)`."""
        entry, topic = self._event(signature), self.topic(signature)
        return [
            _fields(entry, log)
            for log in receipt.logs
            if log.address.lower() == self.address.lower() and log.topics[0] == topic
        ]


@cache
def own_artifact(name: str) -> Artifact:
    """Return one of our own contracts, as committed."""
    return _artifact(ARTIFACTS / f"{name}.json")


@cache
def conditional_tokens_artifact() -> Artifact:
    return _artifact(CONDITIONAL_TOKENS)


@cache
def safe_artifact(path: str) -> Artifact:
    """Return a contract of the Safe package, such as `GnosisSafe.sol/GnosisSafe`."""
    return _artifact(SAFE_ARTIFACTS / f"{path}.json")


def own_artifact_fields(name: str) -> dict[str, Any]:
    """Return all fields of an artifact file."""
    fields: dict[str, Any] = json.loads((ARTIFACTS / f"{name}.json").read_text())
    return fields


def _artifact(path: Path) -> Artifact:
    fields = json.loads(path.read_text())
    return Artifact(fields.get("abi", []), bytes.fromhex(fields["bytecode"].removeprefix("0x")))


@cache
def an_actor(name: str) -> Actor:
    """Return the account whose key is the hash of the name."""
    key = keccak256(name.encode())
    public_key = PrivateKey(key).public_key.format(compressed=False)
    return Actor(key, "0x" + keccak256(public_key[1:])[-20:].hex())


def word_of_address(address: str) -> bytes:
    """Return the address as a 32-byte word, as in topics."""
    return bytes.fromhex(address.removeprefix("0x").rjust(64, "0"))


def _constructor(abi: Abi) -> Mapping[str, Any]:
    return next((entry for entry in abi if entry["type"] == "constructor"), {})


def _selector(entry: Mapping[str, Any]) -> bytes:
    return keccak256(_signature(entry).encode())[:4]


def _signature(entry: Mapping[str, Any]) -> str:
    return f"{entry['name']}({','.join(_types(entry['inputs']))})"


def _types(inputs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [_type(declared) for declared in inputs]


def _type(declared: Mapping[str, Any]) -> str:
    kind = str(declared["type"])
    if not kind.startswith("tuple"):
        return kind
    return f"({','.join(_types(declared['components']))}){kind.removeprefix('tuple')}"


def _fields(entry: Mapping[str, Any], log: Log) -> dict[str, Any]:
    indexed = [declared for declared in entry["inputs"] if declared["indexed"]]
    others = [declared for declared in entry["inputs"] if not declared["indexed"]]
    fields = {
        declared["name"]: decode([_type(declared)], topic)[0]
        for declared, topic in zip(indexed, log.topics[1:], strict=True)
    }
    values = decode(_types(others), log.data)
    return fields | {d["name"]: value for d, value in zip(others, values, strict=True)}
