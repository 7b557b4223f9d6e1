"""The deployment plan of the sandbox, with its publicly known keys."""

from pathlib import Path
from typing import Final

from foretell.chain.deploy_plan import CreatorWhitelist, DeployPlan
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.sandbox_accounts import (
    SANDBOX_CHAIN_ID,
    UNITS_BY_ROLE,
    AccountRole,
    sandbox_account,
    sandbox_accounts,
)
from foretell.domain.exchange.profiles import SANDBOX_NEG_RISK_PROFILES, SANDBOX_PROFILES
from foretell.domain.values.hexadecimal import Address

# The addresses and the name that the ecosystem's clients contain, and derive their users' Safes
# from. The MultiSend and the fallback handler that they contain are those of the CREATE2 factory.
ECOSYSTEM_SAFE_SINGLETON: Final = Address("0xe51abdf814f8854941b9fe8e3a4f65cab4e7a4a8")
ECOSYSTEM_SAFE_FACTORY: Final = Address("0xaacfeea03eb1561c4e67d661e40682bd20e3541b")
ECOSYSTEM_DEPOSIT_WALLET_BEACON: Final = Address("0x74a618ebdd62ff8579a8fe94f5b888d7623b9c35")
ECOSYSTEM_DEPOSIT_WALLET_FACTORIES: Final = (
    Address("0x2ccdc6c5ddcd895afccd259f291de9b618a5ca6c"),
    Address("0x00000000000fb5c9adea0298d729a0cb3823cc07"),
)
ECOSYSTEM_RELAY_HUB: Final = Address("0xd216153c06e857cd7f72665e0af1d7d82172f494")
ECOSYSTEM_PROXY_WALLET: Final = Address("0x44e999d5c2f66ef0861317f9a4805ac2e90aeb4f")
ECOSYSTEM_PROXY_WALLET_FACTORY: Final = Address("0xab45c5a4b0c941a2f231c04c3f49182e1a254052")
ECOSYSTEM_SAFE_FACTORY_NAME: Final = "Polymarket Contract Proxy Factory"


def sandbox_plan(npm_folder: Path) -> DeployPlan:
    """Return the plan of the sandbox, with the addresses that the ecosystem's clients contain."""
    chain_id = SANDBOX_CHAIN_ID
    creator = sandbox_account(AccountRole.CREATOR, chain_id)
    proposer = sandbox_account(AccountRole.PROPOSER, chain_id)
    return DeployPlan(
        chain_id=chain_id,
        npm_folder=npm_folder,
        admin_key=sandbox_account(AccountRole.ADMIN, chain_id).private_key,
        operators=(sandbox_account(AccountRole.OPERATOR, chain_id).address,),
        registrars=(sandbox_account(AccountRole.REGISTRAR, chain_id).address,),
        fee_receiver=sandbox_account(AccountRole.TREASURY, chain_id).address,
        community_pool=sandbox_account(AccountRole.COMMUNITY, chain_id).address,
        profiles=SANDBOX_PROFILES,
        neg_risk_profiles=SANDBOX_NEG_RISK_PROFILES,
        safe_factory_name=ECOSYSTEM_SAFE_FACTORY_NAME,
        placed={
            ContractName.SAFE_SINGLETON: ECOSYSTEM_SAFE_SINGLETON,
            ContractName.SAFE_FACTORY: ECOSYSTEM_SAFE_FACTORY,
            ContractName.DEPOSIT_WALLET_BEACON: ECOSYSTEM_DEPOSIT_WALLET_BEACON,
            ContractName.DEPOSIT_WALLET_FACTORY: ECOSYSTEM_DEPOSIT_WALLET_FACTORIES[0],
            ContractName.SECOND_DEPOSIT_WALLET_FACTORY: ECOSYSTEM_DEPOSIT_WALLET_FACTORIES[1],
            ContractName.RELAY_HUB: ECOSYSTEM_RELAY_HUB,
            ContractName.PROXY_WALLET: ECOSYSTEM_PROXY_WALLET,
            ContractName.PROXY_WALLET_FACTORY: ECOSYSTEM_PROXY_WALLET_FACTORY,
        },
        whitelists=(CreatorWhitelist(creator.private_key, (proposer.address,)),),
        faucet_key=sandbox_account(AccountRole.FAUCET, chain_id).private_key,
        grants_units={
            account.address: units
            for role, units in UNITS_BY_ROLE.items()
            for account in sandbox_accounts(role, chain_id)
        },
    )
