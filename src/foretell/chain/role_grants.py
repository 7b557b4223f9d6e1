"""The roles that a deployment's contracts and accounts must have, each with a view that checks it."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from foretell.chain.deploy_plan import DeployPlan
from foretell.chain.planned_contracts import create2_contract, whitelist_code
from foretell.chain.views import ViewCall
from foretell.domain.contracts.calldata import (
    ADD_ADAPTER,
    ADD_OPERATOR,
    ADD_REGISTRAR,
    IS_OPERATOR,
    REGISTER_WHITELIST,
)
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.neg_risk import SET_ORACLE
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address

_IS_REGISTRAR: Final = contract_function("isRegistrar(address)", "(bool)")
_IS_ADAPTER: Final = contract_function("isAdapter(address)", "(bool)")
_WHITELIST_OF: Final = contract_function("whitelistOf(address)", "(address)")
_ORACLE: Final = contract_function("oracle()", "(address)")

ADAPTERS: Final[Mapping[ContractName, Sequence[ContractName]]] = MappingProxyType(
    {
        ContractName.DIRECT_RESOLUTION_ORACLE: (
            ContractName.DIRECT_RESOLUTION_ADAPTER,
            ContractName.NEG_RISK_DIRECT_ADAPTER,
        ),
        ContractName.OPTIMISTIC_ORACLE: (
            ContractName.OPTIMISTIC_RESOLUTION_ADAPTER,
            ContractName.NEG_RISK_OPTIMISTIC_ADAPTER,
        ),
        ContractName.MARKET_REGISTRY: (
            ContractName.DIRECT_RESOLUTION_ADAPTER,
            ContractName.OPTIMISTIC_RESOLUTION_ADAPTER,
            ContractName.NEG_RISK_OPERATOR,
            ContractName.NEG_RISK_OPTIMISTIC_OPERATOR,
        ),
    }
)
"""The adapters that each oracle and the registry accept calls from."""

ORACLES: Final[Mapping[ContractName, ContractName]] = MappingProxyType(
    {
        ContractName.NEG_RISK_OPERATOR: ContractName.NEG_RISK_DIRECT_ADAPTER,
        ContractName.NEG_RISK_OPTIMISTIC_OPERATOR: ContractName.NEG_RISK_OPTIMISTIC_ADAPTER,
    }
)
"""The adapter that each operator of neg-risk events accepts answers from."""


class RoleGrant(NamedTuple):
    """A role: the view that checks it, the result it must have, and the call that grants it."""

    caller_key: bytes
    view: ViewCall
    wanted: object
    call: ContractCall


def role_grants(
    plan: DeployPlan, address_by_name: Mapping[ContractName, Address]
) -> Iterator[RoleGrant]:
    """Yield every role of a deployment, granted already or not."""
    exchanges = (
        address_by_name[ContractName.EXCHANGE],
        address_by_name[ContractName.NEG_RISK_EXCHANGE],
    )
    operators = (*plan.operators, address_by_name[ContractName.BATCH_SETTLER])
    for function, check, targets, subjects in (
        (ADD_OPERATOR, IS_OPERATOR, exchanges, operators),
        (ADD_REGISTRAR, _IS_REGISTRAR, exchanges, plan.registrars),
        *(
            (
                ADD_ADAPTER,
                _IS_ADAPTER,
                (address_by_name[target],),
                [address_by_name[name] for name in names],
            )
            for target, names in ADAPTERS.items()
        ),
    ):
        for target, subject in itertools.product(targets, subjects):
            call = ContractCall(target, function.encode(subject))
            view = ViewCall(target, check, (subject,))
            yield RoleGrant(plan.admin_key, view, wanted=True, call=call)
    for name, oracle in ORACLES.items():
        target = address_by_name[name]
        call = ContractCall(target, SET_ORACLE.encode(address_by_name[oracle]))
        yield RoleGrant(plan.admin_key, ViewCall(target, _ORACLE), address_by_name[oracle], call)
    registry = address_by_name[ContractName.PROPOSER_WHITELIST_REGISTRY]
    for whitelist in plan.whitelists:
        creator = address_of_key(whitelist.creator_key)
        chosen = create2_contract(whitelist_code(whitelist)).address
        call = ContractCall(registry, REGISTER_WHITELIST.encode(chosen))
        view = ViewCall(registry, _WHITELIST_OF, (creator,))
        yield RoleGrant(whitelist.creator_key, view, chosen, call)
