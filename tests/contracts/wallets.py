"""Wallets that are code, most of them hostile, written as plain EVM bytecode.

A wallet answers `isValidSignature` with one piece of code and everything else, above all an ERC-1155
receipt, with another.
"""

from typing import Final

from tests.contracts.evm import an_actor
from tests.contracts.market import World

SIGNATURE_YES: Final = bytes.fromhex("1626ba7e").ljust(32, b"\0")
RECEIPT_YES: Final = bytes.fromhex("f23a6e61").ljust(32, b"\0")
MEGABYTE: Final = "100000"

# Where the code begins that answers everything but a question for a signature.
RECEIPT_START: Final = 15

REVERT: Final = bytes.fromhex("5f5ffd")
REVERT_SAYING_YES: Final = b"\x7f" + SIGNATURE_YES + bytes.fromhex("5f5260205ffd")
STOP: Final = bytes.fromhex("00")
BURN: Final = bytes.fromhex("fe")


def answer(word: bytes, size: str = "20") -> bytes:
    """Return code that answers with a word, cut or padded to a size in hex."""
    push = f"{0x5F + len(size) // 2:02x}{size}"
    return b"\x7f" + word + bytes.fromhex(f"5f52{push}5ff3")


def answer_receipts() -> bytes:
    """Return code that takes one token as well as several: it answers with the call's own selector,
    which both receipts do."""
    return bytes.fromhex("5f355f5260205ff3")


def answer_while_empty(word: bytes) -> bytes:
    """Return code that answers with the word as long as its first storage slot is empty."""
    return b"\x7f" + word + bytes.fromhex("5f5415025f5260205ff3")


def call_of(contract: str, calldata: bytes) -> bytes:
    """Return code that calls a contract, whatever comes of it; the calldata must end the wallet."""
    size = f"61{len(calldata):04x}"
    copy = f"{size}{size}38035f39"
    return bytes.fromhex(f"{copy}5f5f{size}5f5f73{contract[2:]}5af150")


def obeying(master: str, on_receipt: bytes) -> bytes:
    """Return code that sends what its master says, an address and calldata, and else the other."""
    forward = "60143603806014" + "5f37" + "5f5f825f5f5f3560601c5af1" + "3d5f5f3e"
    after = RECEIPT_START + 27 + len(forward) // 2 + 4
    done = f"61{after + 3:04x}57" + "3d5ffd" + "5b3d5ff3"
    start = f"3373{master[2:]}1861{after + 3 + 4:04x}57"
    return bytes.fromhex(start + forward + done) + b"\x5b" + on_receipt


def wallet(on_signature: bytes, on_receipt: bytes, data: bytes = b"") -> bytes:
    """Return a wallet's code, with data at its end."""
    start = bytes.fromhex("5f3560e01c631626ba7e1461") + (15 + len(on_receipt)).to_bytes(2, "big")
    return start + b"\x57" + on_receipt + b"\x5b" + on_signature + data


WALLET_ADDRESS: Final = an_actor("wallet").address
HONEST: Final = wallet(answer(SIGNATURE_YES), answer(RECEIPT_YES))


def a_wallet(world: World, code: bytes = HONEST) -> str:
    """Put up a wallet that owns collateral and sets and lets the exchange move them."""
    address = WALLET_ADDRESS
    world.endow(address, collateral=10**12, sets=10**12)
    world.evm.rpc("anvil_setCode", address, "0x" + code.hex())
    return address
