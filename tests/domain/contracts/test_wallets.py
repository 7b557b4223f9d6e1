from dataclasses import replace

import msgspec
import pytest
from tests.domain.contracts.test_deployment import a_deployment
from tests.rigs.values import a_buy, an_address

from foretell.domain.contracts.deployment import PROXY_CONTRACTS, ContractName, DeployedContract
from foretell.domain.contracts.wallets import Wallets
from foretell.domain.errors.order import NoDepositWallets, UnsupportedSignatureType, WrongWallet
from foretell.domain.exchange.order import SignatureType, SignedOrder

ALICE = an_address("alice")
SAFE = a_deployment().safe_of(ALICE)
PROXY_WALLET = a_deployment().proxy_wallet_of(ALICE)
DEPOSIT_WALLETS = a_deployment().deposit_wallets_of(ALICE)


def of_maker(maker: str, signature_type: SignatureType) -> SignedOrder:
    return msgspec.structs.replace(a_buy("alice"), maker=maker, signature_type=signature_type)


def test_an_address_has_itself_its_safe_its_deposit_wallets_and_its_proxy_wallet() -> None:
    assert Wallets(a_deployment()).of(ALICE) == (ALICE, SAFE, *DEPOSIT_WALLETS, PROXY_WALLET)


def test_a_deployment_without_a_factory_refuses_proxy_wallets_by_name() -> None:
    deployment = a_deployment()
    older = {
        name: contract
        for name, contract in deployment.contracts.items()
        if name not in PROXY_CONTRACTS
    }
    wallets = Wallets(replace(deployment, contracts=older))
    assert wallets.of(ALICE) == (ALICE, SAFE, *DEPOSIT_WALLETS)
    assert SignatureType.PROXY not in wallets.served_types
    with pytest.raises(UnsupportedSignatureType, match=r"0 \(EOA\) or 2 \(Safe\) or 3"):
        wallets.check_maker(of_maker(PROXY_WALLET, SignatureType.PROXY))


@pytest.mark.parametrize(
    ("dialect", "wallet"),
    [
        ("kuest_", DEPOSIT_WALLETS[0]),
        ("service_", DEPOSIT_WALLETS[0]),
        ("poly_", DEPOSIT_WALLETS[1]),
    ],
)
def test_of_two_deposit_wallets_a_client_means_the_one_that_it_derives(
    dialect: str, wallet: str
) -> None:
    wallets = Wallets(a_deployment())
    assert wallets.by_signature_type(ALICE, SignatureType.CONTRACT, dialect) == wallet
    wallets.check_maker(of_maker(wallet, SignatureType.CONTRACT))


def test_a_deployment_without_a_factory_has_no_deposit_wallets() -> None:
    deployment = a_deployment()
    without: dict[ContractName, DeployedContract] = {
        name: contract
        for name, contract in deployment.contracts.items()
        if name
        not in {
            ContractName.DEPOSIT_WALLET_FACTORY,
            ContractName.SECOND_DEPOSIT_WALLET_FACTORY,
        }
    }
    wallets = Wallets(replace(deployment, contracts=without))
    assert wallets.of(ALICE) == (ALICE, SAFE, PROXY_WALLET)
    assert SignatureType.CONTRACT not in wallets.served_types
    with pytest.raises(NoDepositWallets):
        wallets.check_maker(of_maker(DEPOSIT_WALLETS[0], SignatureType.CONTRACT))


@pytest.mark.parametrize(
    ("signature_type", "wallet"),
    [
        (SignatureType.EOA, ALICE),
        (SignatureType.SAFE, SAFE),
        (SignatureType.PROXY, PROXY_WALLET),
    ],
)
def test_a_signature_type_stands_for_one_wallet_of_the_signer(
    signature_type: SignatureType, wallet: str
) -> None:
    wallets = Wallets(a_deployment())
    assert wallets.by_signature_type(ALICE, signature_type) == wallet
    wallets.check_maker(of_maker(wallet, signature_type))


@pytest.mark.case("C-04")
@pytest.mark.parametrize(
    ("maker", "signature_type"),
    [
        (SAFE, SignatureType.EOA),
        (ALICE, SignatureType.SAFE),
        (an_address("bob"), SignatureType.EOA),
        (ALICE, SignatureType.CONTRACT),
        (ALICE, SignatureType.PROXY),
        (SAFE, SignatureType.PROXY),
        (PROXY_WALLET, SignatureType.SAFE),
        (a_deployment().proxy_wallet_of(an_address("bob")), SignatureType.PROXY),
        (SAFE, SignatureType.CONTRACT),
        (DEPOSIT_WALLETS[0], SignatureType.EOA),
        (DEPOSIT_WALLETS[1], SignatureType.SAFE),
        (a_deployment().deposit_wallets_of(an_address("bob"))[0], SignatureType.CONTRACT),
    ],
)
def test_an_order_of_another_wallet_is_refused(maker: str, signature_type: SignatureType) -> None:
    with pytest.raises(WrongWallet, match=maker):
        Wallets(a_deployment()).check_maker(of_maker(maker, signature_type))


def test_a_wallet_is_the_same_after_it_left_the_cache() -> None:
    owners = [an_address(f"owner {number}") for number in range(4)]
    wallets = Wallets(a_deployment(), kept_max=2)
    safes = [wallets.safe_of(owner) for owner in owners]
    assert [wallets.safe_of(owner) for owner in owners] == safes
    assert len(set(safes)) == 4
