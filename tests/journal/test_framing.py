import hashlib

from foretell.journal.framing import CHAIN_START, next_chain


def test_a_chain_is_the_hash_of_all_before() -> None:
    first = hashlib.blake2b(bytes(16) + b"a", digest_size=16).digest()
    second = hashlib.blake2b(first + b"b", digest_size=16).digest()
    assert next_chain(next_chain(CHAIN_START, b"a"), b"b") == second
