"""Deposit wallets: addresses and batches, held against what the ecosystem's clients compute."""

from eth_account import Account
from eth_account.messages import encode_typed_data
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import (
    CHAIN_ID,
    WALLET_BEACON,
    WALLET_FACTORIES,
    a_deployment,
    a_key,
    an_address,
)

from foretell.domain.contracts.deposit_wallet import (
    DEPLOY_WALLET,
    EXECUTE_BATCH,
    WalletBatch,
    deposit_wallet_address,
)
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.values.hexadecimal import Address, address_of

OWNER = Address("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266")
ADDRESSES = st.binary(min_size=20, max_size=20).map(address_of)
CALLS = st.lists(
    st.builds(InnerCall, ADDRESSES, st.binary(max_size=100), st.integers(0, 2**256 - 1)), max_size=4
).map(tuple)


def test_a_wallet_has_the_address_that_kuest_clients_derive() -> None:
    # derive_deposit_wallet of kuest-py-builder-relayer-client 2.0.9.
    wallet = deposit_wallet_address(OWNER, WALLET_FACTORIES[0], WALLET_BEACON)
    assert wallet == "0xf3ab66d34f0b14c9a4f8564ec8baabbf51ad0fd6"


def test_a_wallet_has_the_address_that_polymarket_clients_derive() -> None:
    # derive_beacon_deposit_wallet of py-builder-relayer-client 0.0.3.
    wallet = deposit_wallet_address(OWNER, WALLET_FACTORIES[1], WALLET_BEACON)
    assert wallet == "0xc4758bc3781f53f331fddc994c8e0de50f88fea2"


def test_an_owner_has_a_wallet_of_each_factory() -> None:
    wallets = a_deployment().deposit_wallets_of(an_address("alice"))
    assert wallets == tuple(
        deposit_wallet_address(an_address("alice"), factory, WALLET_BEACON)
        for factory in WALLET_FACTORIES
    )
    assert len({*wallets, *a_deployment().deposit_wallets_of(an_address("bob"))}) == 4


@given(
    wallet=ADDRESSES,
    calls=CALLS,
    nonce=st.integers(0, 2**256 - 1),
    deadline_s=st.integers(0, 2**256 - 1),
)
def test_the_digest_of_a_batch_is_that_of_a_generic_encoder(
    wallet: Address, calls: tuple[InnerCall, ...], nonce: int, deadline_s: int
) -> None:
    encoded = encode_typed_data(
        {
            "name": "DepositWallet",
            "version": "1",
            "chainId": CHAIN_ID,
            "verifyingContract": wallet,
        },
        {
            "Call": [
                {"name": "target", "type": "address"},
                {"name": "value", "type": "uint256"},
                {"name": "data", "type": "bytes"},
            ],
            "Batch": [
                {"name": "wallet", "type": "address"},
                {"name": "nonce", "type": "uint256"},
                {"name": "deadline", "type": "uint256"},
                {"name": "calls", "type": "Call[]"},
            ],
        },
        {
            "wallet": wallet,
            "nonce": nonce,
            "deadline": deadline_s,
            "calls": [
                {"target": call.to, "value": call.value_wei, "data": call.calldata}
                for call in calls
            ],
        },
    )
    signed = Account.sign_message(encoded, a_key("alice"))
    batch = WalletBatch(wallet, calls, nonce, deadline_s)
    assert batch.digest(CHAIN_ID) == bytes(signed.message_hash)


def test_a_batch_is_encoded_for_its_wallet() -> None:
    call = InnerCall(an_address("bob"), b"\1\2", 3)
    batch = WalletBatch(an_address("wallet"), (call,), 4, 5)
    assert EXECUTE_BATCH.decode(batch.encode(b"signature")) == (
        ((an_address("bob"), 3, b"\1\2"),),
        5,
        b"signature",
    )
    assert DEPLOY_WALLET.name == "deploy"
