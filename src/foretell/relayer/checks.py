"""Checks of submissions: of their content, and of the chain's current state.

Checks cost no gas: a transaction that cannot succeed is refused before it is sent.
"""

from typing import Final, NamedTuple

from foretell.chain.reader import SafeState
from foretell.chain.views import LATEST
from foretell.domain.contracts.calldata import MergePositions, RedeemPositions
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.deposit_wallet import DEPLOY_WALLET, WalletBatch
from foretell.domain.contracts.proxy_wallet import RelayedCall, decode_proxy_calls
from foretell.domain.contracts.safe import (
    OPERATION_CALL,
    InnerCall,
    SafeTx,
    create_proxy_digest,
    recover_safe_signer,
)
from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.errors.families import MalformedSignature
from foretell.domain.errors.relayer import InvalidField, NotEnoughToMerge, NothingToRedeem
from foretell.domain.relay.allowed_calls import EventCall, ReadCall, ServedCall
from foretell.domain.relay.request import (
    CREATE_GAS,
    CREATIONS,
    DEPOSIT_KINDS,
    RelayKind,
    RelayRequest,
    relay_gas,
)
from foretell.domain.values.hexadecimal import Address, Bytes32, address_bytes, keccak256, word_of
from foretell.domain.values.tokens import collection_id, token_id
from foretell.relayer.body import NONCE_MAX, Submission
from foretell.relayer.context import RelayerContext

_PARAMS: Final = "depositWalletParams"
_OWN_SIGNATURE: Final = "one of the owner over exactly this transaction"


class CheckedSubmission(NamedTuple):
    """A well-formed submission, signed by its owner, with the calls that its wallet would make."""

    submission: Submission
    digest: Bytes32
    calls: tuple[ReadCall, ...]

    def request(self, transaction_id: str, submitter: Address, now_ms: int) -> RelayRequest:
        """Return the request for this submission."""
        submission = self.submission
        is_create = submission.kind in CREATIONS
        return RelayRequest(
            transaction_id=transaction_id,
            kind=submission.kind,
            owner=submission.owner,
            submitter=submitter,
            wallet=submission.wallet,
            target=submission.target,
            calldata=submission.calldata,
            operation=submission.operation,
            safe_nonce=submission.safe_nonce,
            signature=submission.signature,
            digest=self.digest,
            gas=CREATE_GAS if is_create else self._gas,
            metadata=submission.metadata,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )

    @property
    def _gas(self) -> int:
        """The limit of its gas: all of it counts toward the budgets of a day, also what is not used."""
        may_convert = EventCall(ServedCall.CONVERT_POSITIONS) in self.calls
        calldata_bytes = len(self.submission.calldata)
        return relay_gas(len(self.calls), calldata_bytes, may_convert=may_convert)


def checked_submission(context: RelayerContext, submission: Submission) -> CheckedSubmission:
    """Return the checked submission, or refuse one with wrong content."""
    if submission.kind in DEPOSIT_KINDS:
        return _checked_deposit(context, submission)
    if submission.kind is RelayKind.PROXY:
        return _checked_proxy(context, submission)
    if submission.wallet != context.deployment.safe_of(submission.owner):
        raise InvalidField("proxyWallet", "the Safe of from")
    calls: tuple[ReadCall, ...] = ()
    if submission.kind is RelayKind.SAFE_CREATE:
        digest = _create_digest(context, submission)
    else:
        calls = context.rules.read_calls(
            submission.target, submission.operation, submission.calldata
        )
        digest = _safe_digest(context, submission)
    _check_signature(submission, digest)
    return CheckedSubmission(submission, word_of(digest), calls)


def _check_signature(submission: Submission, digest: bytes) -> None:
    try:
        is_own = recover_safe_signer(digest, submission.signature) == submission.owner
    except MalformedSignature:
        is_own = False
    if not is_own:
        raise InvalidField("signature", _OWN_SIGNATURE)


def _checked_deposit(context: RelayerContext, submission: Submission) -> CheckedSubmission:
    """Return the checked submission of a deposit wallet.

    Its calldata is that of the whole transaction. Nothing is signed to create a wallet: it belongs to
    its owner alone. The digest then is that of the creation's calldata.
    """
    deployment = context.deployment
    if submission.target not in deployment.deposit_wallet_factories:
        factories = " or ".join(deployment.deposit_wallet_factories) or "a factory: there is none"
        raise InvalidField("to", f"the deposit wallet factory {factories}")
    number = deployment.deposit_wallet_factories.index(submission.target)
    wallet = deployment.deposit_wallets_of(submission.owner)[number]
    if submission.kind is RelayKind.WALLET_CREATE:
        calldata = DEPLOY_WALLET.encode(submission.owner)
        digest = keccak256(address_bytes(submission.target) + calldata)
        return CheckedSubmission(
            submission._replace(wallet=wallet, calldata=calldata), word_of(digest), ()
        )
    if submission.wallet != wallet:
        raise InvalidField(f"{_PARAMS}.depositWallet", f"{wallet}, the wallet of from")
    if submission.deadline_s <= context.now_ms() // 1000:
        raise InvalidField(f"{_PARAMS}.deadline", "a time ahead, in seconds")
    calls = tuple(
        decoded
        for call in submission.calls
        for decoded in context.rules.read_calls(call.to, OPERATION_CALL, call.calldata)
    )
    assert submission.safe_nonce is not None
    batch = WalletBatch(wallet, submission.calls, submission.safe_nonce, submission.deadline_s)
    digest = batch.digest(deployment.chain_id)
    _check_signature(submission, digest)
    calldata = batch.encode(submission.signature)
    return CheckedSubmission(submission._replace(calldata=calldata), word_of(digest), calls)


def _checked_proxy(context: RelayerContext, submission: Submission) -> CheckedSubmission:
    """Return the checked submission of a proxy wallet; target and calldata are the whole transaction's."""
    deployment = context.deployment
    factory = deployment.proxy_wallet_factory
    if factory is None or submission.target != factory:
        raise InvalidField("to", f"the proxy wallet factory {factory or ': there is none'}")
    hub, wallet = deployment.address(ContractName.RELAY_HUB), submission.wallet
    if wallet != deployment.proxy_wallet_of(submission.owner):
        raise InvalidField("proxyWallet", "the proxy wallet of from")
    if submission.hub != hub:
        raise InvalidField("signatureParams.relayHub", hub)
    if submission.relay != context.sender.address:
        raise InvalidField("signatureParams.relay", context.sender.address)
    calls = tuple(
        decoded
        for call in decode_proxy_calls(submission.calldata)
        for decoded in context.rules.read_calls(call.to, OPERATION_CALL, _plain(call))
    )
    assert submission.safe_nonce is not None
    relayed = RelayedCall(
        submission.owner,
        factory,
        submission.calldata,
        submission.gas_limit,
        submission.safe_nonce,
        hub,
        submission.relay,
    )
    digest = relayed.digest()
    _check_signature(submission, digest)
    calldata = relayed.encode(submission.signature)
    return CheckedSubmission(
        submission._replace(target=hub, calldata=calldata), word_of(digest), calls
    )


def _plain(call: InnerCall) -> bytes:
    """Return the calldata of a call without native currency, or refuse it."""
    if call.value_wei:
        raise MalformedCalldata("calls with the value 0")
    return call.calldata


def _create_digest(context: RelayerContext, submission: Submission) -> bytes:
    deployment = context.deployment
    if submission.target != deployment.safe_factory:
        raise InvalidField("to", f"the Safe factory {deployment.safe_factory}")
    return create_proxy_digest(
        deployment.safe_factory, deployment.safe_factory_name, deployment.chain_id
    )


def _safe_digest(context: RelayerContext, submission: Submission) -> bytes:
    assert submission.safe_nonce is not None
    safe_tx = SafeTx(
        submission.wallet,
        submission.target,
        submission.calldata,
        submission.safe_nonce,
        submission.operation,
    )
    return safe_tx.digest(context.deployment.chain_id)


async def fetch_own_wallet(
    context: RelayerContext, wallet: Address, owner: Address, kind: RelayKind, at: str = LATEST
) -> SafeState:
    """Return the state of the owner's wallet, or refuse one that the owner does not control alone.

    A deposit wallet answers as a Safe does. A proxy wallet's nonce is its owner's at the relay hub; it is
    the owner's whether it is deployed or not.
    """
    if kind is RelayKind.PROXY:
        hub = context.deployment.address(ContractName.RELAY_HUB)
        return SafeState(await context.reader.relay_nonce(hub, owner, at), 1, (owner,))
    is_deposit = kind in DEPOSIT_KINDS
    field, name = (
        (f"{_PARAMS}.depositWallet", "deposit wallet") if is_deposit else ("proxyWallet", "Safe")
    )
    state = await context.reader.safe(wallet, at)
    if state is None:
        raise InvalidField(field, f"a {name} that is deployed")
    if not state.is_owned_by(owner) or state.nonce > NONCE_MAX:
        raise InvalidField(field, f"a {name} that from alone controls")
    return state


async def check_holdings(context: RelayerContext, checked: CheckedSubmission) -> None:
    """Refuse to redeem nothing, and to merge more than the wallet holds."""
    for call in checked.calls:
        if isinstance(call, RedeemPositions):
            await _check_redeem(context, checked.submission, call)
        elif isinstance(call, MergePositions):
            await _check_merge(context, checked.submission, call)


async def _check_redeem(
    context: RelayerContext, submission: Submission, call: RedeemPositions
) -> None:
    """Refuse when the wallet holds none of the tokens; an owner may burn losing tokens."""
    tokens = _tokens(call.collateral, call.condition_id, call.index_sets)
    wallets = (submission.wallet, submission.owner)
    units = await context.reader.token_units(
        [(wallet, token) for wallet in wallets for token in tokens]
    )
    if not any(units[: len(tokens)]):
        raise NothingToRedeem(
            submission.wallet, submission.owner if any(units[len(tokens) :]) else None
        )


async def _check_merge(
    context: RelayerContext, submission: Submission, call: MergePositions
) -> None:
    tokens = _tokens(call.collateral, call.condition_id, call.partition)
    have = min(await context.reader.token_units([(submission.wallet, token) for token in tokens]))
    if have < call.amount_units:
        raise NotEnoughToMerge(have, call.amount_units)


def _tokens(collateral: Address, condition: Bytes32, index_sets: tuple[int, ...]) -> list[str]:
    return [
        str(token_id(collateral, collection_id(condition, index_set))) for index_set in index_sets
    ]
