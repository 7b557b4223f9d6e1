"""Contract wallets, most of them hostile, in plain EVM bytecode.

A wallet answers `isValidSignature` with one piece of code and every other call, mainly ERC-1155
receipts, with another.
"""

from typing import Final

from tests.contracts.evm import an_actor
from tests.contracts.market import World

SIGNATURE_YES: Final = bytes.fromhex("1626ba7e").ljust(32, b"\0")
RECEIPT_YES: Final = bytes.fromhex("f23a6e61").ljust(32, b"\0")
MEGABYTE: Final = "100000"

# The start of the code that answers all calls other than `isValidSignature`.
RECEIPT_START: Final = 15

REVERT: Final = bytes.fromhex("5f5ffd")
REVERT_SAYING_YES: Final = b"\x7f" + SIGNATURE_YES + bytes.fromhex("5f5260205ffd")
STOP: Final = bytes.fromhex("00")
BURN: Final = bytes.fromhex("fe")


def answer(word: bytes, size: str = "20") -> bytes:
    """Return code that answers with a word, cut or padded to a size in hex digits."""
    push = f"{0x5F + len(size) // 2:02x}{size}"
    return b"\x7f" + word + bytes.fromhex(f"5f52{push}5ff3")


def answer_receipts() -> bytes:
    """Return code that accepts ERC-1155 receipts, single and batch, by answering with the selector."""
    return bytes.fromhex("5f355f5260205ff3")


def answer_receipts_on_even_seconds() -> bytes:
    """Return code that accepts ERC-1155 receipts when the block's time is even, and else answers zero."""
    return bytes.fromhex("5f3560014216" + "15025f5260205ff3")


def answer_while_empty(word: bytes) -> bytes:
    """Return code that answers with the word while its first storage slot is empty."""
    return b"\x7f" + word + bytes.fromhex("5f5415025f5260205ff3")


def call_of(contract: str, calldata: bytes) -> bytes:
    """Return code that calls a contract and ignores the result; the calldata is the end of the wallet's code."""
    size = f"61{len(calldata):04x}"
    copy = f"{size}{size}38035f39"
    return bytes.fromhex(f"{copy}5f5f{size}5f5f73{contract[2:]}5af150")


def obeying(controller: str, on_receipt: bytes) -> bytes:
    """Return code that executes a call for its controller, and runs other code for all other callers."""
    forward = "60143603806014" + "5f37" + "5f5f825f5f5f3560601c5af1" + "3d5f5f3e"
    after = RECEIPT_START + 27 + len(forward) // 2 + 4
    done = f"61{after + 3:04x}57" + "3d5ffd" + "5b3d5ff3"
    start = f"3373{controller[2:]}1861{after + 3 + 4:04x}57"
    return bytes.fromhex(start + forward + done) + b"\x5b" + on_receipt


def wallet(on_signature: bytes, on_receipt: bytes, data: bytes = b"") -> bytes:
    """Return the code of a wallet, with data at its end."""
    start = bytes.fromhex("5f3560e01c631626ba7e1461") + (15 + len(on_receipt)).to_bytes(2, "big")
    return start + b"\x57" + on_receipt + b"\x5b" + on_signature + data


WALLET_ADDRESS: Final = an_actor("wallet").address
HONEST: Final = wallet(answer(SIGNATURE_YES), answer(RECEIPT_YES))


def a_wallet(world: World, code: bytes = HONEST) -> str:
    """Deploy a wallet with collateral, sets and approvals for the exchange."""
    address = WALLET_ADDRESS
    world.endow(address, collateral=10**12, sets=10**12)
    world.evm.rpc("anvil_setCode", address, "0x" + code.hex())
    return address
