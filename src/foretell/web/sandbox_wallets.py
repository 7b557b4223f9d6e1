"""The sandbox's wallets: they sign and send here, and their keys never reach a browser.

Accounts that the products send from are not among them: a transaction of somebody else would take a
nonce that a product has stored.
"""

import asyncio
import hmac
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from foretell.chain.fees import fetch_fees
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of
from foretell.chain.sending_account import FEE_CAP_WEI
from foretell.domain.contracts.sandbox_accounts import SANDBOX_ACCOUNTS, AccountRole, check_sandbox
from foretell.domain.errors.http import MalformedBody
from foretell.domain.errors.web import (
    ForeignHost,
    UnknownWallet,
    WalletBusy,
    WrongSandboxToken,
)
from foretell.domain.evm.raw_transaction import TxFields, sign_tx
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import (
    Address,
    checksum_address,
    parse_address,
    parse_bytes32,
)

USABLE: Final = (AccountRole.TRADER, AccountRole.CREATOR, AccountRole.PROPOSER)
READING_METHODS: Final = frozenset(
    {
        "eth_blockNumber",
        "eth_call",
        "eth_chainId",
        "eth_estimateGas",
        "eth_getBalance",
        "eth_getCode",
        "eth_getTransactionReceipt",
    }
)
"""What a page may ask of the chain; nothing here changes it or its clock."""
CALLDATA_BYTES_MAX: Final = 48 * 1024
VALUE_WEI_MAX: Final = 10**21
WAITING_MAX: Final = 16
"""Transactions of one wallet that wait for those before them to be sent."""
SEND_DEADLINE_S: Final = 30.0
GAS_MARGIN_PERCENT: Final = 20


class WalletAccount(msgspec.Struct, frozen=True):
    """A wallet that a browser may use."""

    address: str
    role: str


class SignRequest(msgspec.Struct, frozen=True):
    """A digest to sign: the 32 bytes that a wallet computes of typed data."""

    address: str
    digest: str


class SendRequest(msgspec.Struct, frozen=True):
    """A transaction to send."""

    address: str
    to: str
    data: str = "0x"
    value: str = "0"


class ChainRequest(msgspec.Struct, frozen=True):
    """A question to the chain, as in JSON-RPC."""

    method: str
    params: list[Any]


class Signature(msgspec.Struct, frozen=True):
    """A signature of a wallet: 65 bytes in hex."""

    signature: str


class SentTransaction(msgspec.Struct, frozen=True):
    """The hash of a transaction that the node has taken; it is in no block yet."""

    hash: str


class ChainAnswer(msgspec.Struct, frozen=True):
    """The chain's answer to a question, as in JSON-RPC."""

    result: Any


class Visitor(NamedTuple):
    """Headers of a request that say who sends it."""

    host: str
    origin: str | None
    token: str


class SandboxWallets:
    """The wallets of one sandbox, and who may use them."""

    def __init__(self, rpc: Rpc, chain_id: int, token: str, hosts: Sequence[str]) -> None:
        check_sandbox(chain_id)
        self._rpc = rpc
        self._chain_id = chain_id
        self._token = token
        self._hosts = frozenset(hosts)
        self._key_by_address: Mapping[Address, bytes] = MappingProxyType(
            {each.address: each.private_key for each in SANDBOX_ACCOUNTS if each.role in USABLE}
        )
        self._lock_by_address: defaultdict[Address, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting_by_address: defaultdict[Address, int] = defaultdict(int)

    def check(self, visitor: Visitor) -> None:
        """Refuse a request that is not of this sandbox's own page with its token.

        The name of the host is checked too: a page whose name was made to lead here has another.
        """
        if visitor.host not in self._hosts:
            raise ForeignHost(visitor.host)
        if visitor.origin is not None and visitor.origin != f"http://{visitor.host}":
            raise ForeignHost(visitor.origin)
        if not hmac.compare_digest(visitor.token.encode(), self._token.encode()):
            raise WrongSandboxToken

    def accounts(self) -> list[WalletAccount]:
        """Return the wallets, traders first."""
        ordered = sorted(SANDBOX_ACCOUNTS, key=lambda each: each.role != AccountRole.TRADER)
        return [
            WalletAccount(checksum_address(each.address), each.role.value)
            for each in ordered
            if each.role in USABLE
        ]

    def sign(self, request: SignRequest) -> str:
        """Return the signature of a wallet over a digest."""
        key = self._key(request.address)
        digest = bytes.fromhex(parse_bytes32(request.digest)[2:])
        return "0x" + sign_digest(digest, key).hex()

    async def send(self, request: SendRequest) -> str:
        """Send a transaction of a wallet, and return its hash."""
        sender, key = parse_address(request.address), self._key(request.address)
        if self._waiting_by_address[sender] >= WAITING_MAX:
            raise WalletBusy(WAITING_MAX)
        self._waiting_by_address[sender] += 1
        try:
            async with asyncio.timeout(SEND_DEADLINE_S), self._lock_by_address[sender]:
                return await self._send(sender, key, request)
        except TimeoutError as error:
            raise WalletBusy(WAITING_MAX) from error
        finally:
            self._waiting_by_address[sender] -= 1

    async def ask(self, request: ChainRequest) -> Any:
        """Return the chain's answer to a question."""
        if request.method not in READING_METHODS:
            raise MalformedBody(f"the method is none of {', '.join(sorted(READING_METHODS))}")
        return await self._rpc.call(request.method, *request.params)

    async def _send(self, sender: Address, key: bytes, request: SendRequest) -> str:
        call = {
            "from": sender,
            "to": parse_address(request.to),
            "data": "0x" + _calldata(request.data).hex(),
            "value": hex(_value_wei(request.value)),
        }
        estimated = await self._rpc.call("eth_estimateGas", call, "pending")
        gas = quantity_of(estimated, "eth_estimateGas")
        answer = await self._rpc.call("eth_getTransactionCount", sender, "pending")
        fields = TxFields(
            self._chain_id,
            quantity_of(answer, "eth_getTransactionCount"),
            await fetch_fees(self._rpc, FEE_CAP_WEI),
            gas + gas * GAS_MARGIN_PERCENT // 100,
            parse_address(request.to),
            _calldata(request.data),
            _value_wei(request.value),
        )
        signed = sign_tx(fields, key)
        await self._rpc.call("eth_sendRawTransaction", "0x" + signed.raw.hex())
        return signed.tx_hash

    def _key(self, address: str) -> bytes:
        try:
            return self._key_by_address[parse_address(address)]
        except KeyError:
            raise UnknownWallet(address) from None


def _calldata(text: str) -> bytes:
    try:
        calldata = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise MalformedBody("`data` is not hex") from None
    if len(calldata) > CALLDATA_BYTES_MAX:
        raise MalformedBody(f"`data` has more than {CALLDATA_BYTES_MAX} bytes")
    return calldata


def _value_wei(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(VALUE_WEI_MAX))):
        raise MalformedBody("`value` is not a decimal integer")
    if (value := int(text)) > VALUE_WEI_MAX:
        raise MalformedBody(f"`value` is above {VALUE_WEI_MAX}")
    return value
