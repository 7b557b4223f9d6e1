"""The contract wallets of the scenarios: what they do when they receive, and how they judge signatures."""

from typing import Final, NamedTuple

from tests.contracts.evm import Actor, own_artifact
from tests.contracts.fast_evm import FastEvm
from tests.contracts.wallets import (
    BURN,
    REVERT,
    SIGNATURE_YES,
    answer,
    answer_receipts,
    answer_receipts_on_even_seconds,
    obeying,
    wallet,
)

# The time of the block decides whether the answer is yes.
ANSWER_ON_EVEN_SECONDS: Final = (
    b"\x7f" + SIGNATURE_YES + bytes.fromhex("4260011660011802" + "5f5260205ff3")
)


class Signers(NamedTuple):
    """Wallets that judge signatures, and the owner of the first.

    One takes its owner's alone, one none at all, so that it approves its orders by a call, and one every
    signature when the block's time is even.
    """

    owned: str
    silent: str
    wavering: str
    owner: Actor

    @property
    def wallets(self) -> tuple[str, str, str]:
        return self.owned, self.silent, self.wavering


def deploy_code(evm: FastEvm, address: str, code: bytes, controller: str) -> str:
    """Give an account a code, with which it obeys the controller."""
    evm.rpc("anvil_setCode", address, "0x" + code.hex())
    evm.controller_by_wallet[address] = controller
    return address


def deploy_hostile(evm: FastEvm, controller: str) -> tuple[str, str, str]:
    """Deploy wallets that sign everything: two refuse tokens, and one changes its mind."""
    receipts = {
        "reverting wallet": REVERT,
        "burning wallet": BURN,
        "fickle wallet": answer_receipts_on_even_seconds(),
    }
    first, second, third = (
        deploy_code(
            evm,
            evm.actor(name).address,
            wallet(answer(SIGNATURE_YES), obeying(controller, on_receipt)),
            controller,
        )
        for name, on_receipt in receipts.items()
    )
    return first, second, third


def deploy_signers(evm: FastEvm, controller: str) -> Signers:
    """Deploy a deposit wallet, a wallet that never says yes, and one that changes its mind."""
    taking = obeying(controller, answer_receipts())
    silent = wallet(answer(bytes(32)), taking)
    wavering = wallet(ANSWER_ON_EVEN_SECONDS, taking)
    owner = evm.actor("owner of a wallet")
    return Signers(
        deploy_deposit_wallet(evm, owner),
        deploy_code(evm, evm.actor("silent wallet").address, silent, controller),
        deploy_code(evm, evm.actor("wavering wallet").address, wavering, controller),
        owner,
    )


def deploy_deposit_wallet(evm: FastEvm, owner: Actor) -> str:
    """Deploy the wallet of an owner, which sends what the owner signs."""
    code = evm.deploy(own_artifact("DepositWallet"))
    beacon = evm.deploy(own_artifact("DepositWalletBeacon"), code.address)
    factory = evm.deploy(own_artifact("DepositWalletFactory"), beacon.address)
    factory.send("deploy", owner.address, sender=owner.address)
    address: str = factory.call("predictWalletAddress", owner.address)
    evm.owner_by_deposit_wallet[address] = owner
    return address
