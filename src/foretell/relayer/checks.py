"""What a wish must be to be relayed: first by itself, then by what the chain says now.

Nothing here costs gas: a transaction that cannot do what its owner wants is refused before any is
spent.
"""

from typing import Final, NamedTuple

from foretell.chain.reader import SafeState
from foretell.domain.contracts.calldata import ClientCall, MergePositions, RedeemPositions
from foretell.domain.contracts.neg_risk import CONVERT_POSITIONS
from foretell.domain.contracts.safe import SafeTx, create_proxy_digest, recover_safe_signer
from foretell.domain.errors.chain import ChainInconsistent, ExecutionReverted
from foretell.domain.errors.families import MalformedSignature
from foretell.domain.errors.relayer import InvalidField, NotEnoughToMerge, NothingToRedeem
from foretell.domain.relay.request import CREATE_GAS, RelayKind, RelayRequest, relay_gas
from foretell.domain.values.hexadecimal import Address, Bytes32, word_of
from foretell.domain.values.tokens import collection_id, token_id
from foretell.relayer.body import NONCE_MAX, Submission
from foretell.relayer.context import RelayerContext

_OWN_SIGNATURE: Final = "one of the owner over exactly this transaction"


class CheckedSubmission(NamedTuple):
    """A wish that is well formed and signed by its owner, with what its wallet would do."""

    wish: Submission
    digest: Bytes32
    calls: tuple[ClientCall | None, ...]

    def request(self, transaction_id: str, submitter: Address, now_ms: int) -> RelayRequest:
        """Return the request that it becomes."""
        wish = self.wish
        is_create = wish.kind is RelayKind.SAFE_CREATE
        return RelayRequest(
            transaction_id=transaction_id,
            kind=wish.kind,
            owner=wish.owner,
            submitter=submitter,
            wallet=wish.wallet,
            target=wish.target,
            calldata=wish.calldata,
            operation=wish.operation,
            safe_nonce=wish.safe_nonce,
            signature=wish.signature,
            digest=self.digest,
            gas=CREATE_GAS if is_create else self._gas,
            metadata=wish.metadata,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )

    @property
    def _gas(self) -> int:
        """The gas that it may take; what is not used is not paid, so a false alarm costs nothing."""
        calldata = self.wish.calldata
        may_convert = CONVERT_POSITIONS.selector in calldata
        return relay_gas(len(self.calls), len(calldata), may_convert=may_convert)


def judge(context: RelayerContext, wish: Submission) -> CheckedSubmission:
    """Return the wish as one that may be relayed, as far as it says so itself, or refuse it."""
    if wish.wallet != context.deployment.safe_of(wish.owner):
        raise InvalidField("proxyWallet", "the Safe of from")
    calls: tuple[ClientCall | None, ...] = ()
    if wish.kind is RelayKind.SAFE_CREATE:
        digest = _create_digest(context, wish)
    else:
        calls = context.rules.read_calls(wish.target, wish.operation, wish.calldata)
        digest = _safe_digest(context, wish)
    try:
        is_own = recover_safe_signer(digest, wish.signature) == wish.owner
    except MalformedSignature:
        is_own = False
    if not is_own:
        raise InvalidField("signature", _OWN_SIGNATURE)
    return CheckedSubmission(wish, word_of(digest), calls)


def _create_digest(context: RelayerContext, wish: Submission) -> bytes:
    deployment = context.deployment
    if wish.target != deployment.safe_factory:
        raise InvalidField("to", f"the Safe factory {deployment.safe_factory}")
    return create_proxy_digest(
        deployment.safe_factory, deployment.safe_factory_name, deployment.chain_id
    )


def _safe_digest(context: RelayerContext, wish: Submission) -> bytes:
    assert wish.safe_nonce is not None
    safe_tx = SafeTx(wish.wallet, wish.target, wish.calldata, wish.safe_nonce, wish.operation)
    return safe_tx.digest(context.deployment.chain_id)


async def fetch_safe(context: RelayerContext, wallet: Address) -> SafeState | None:
    """Return a Safe's state, or None where there is nothing that answers as a Safe does."""
    try:
        return await context.reader.safe(wallet)
    except (ExecutionReverted, ChainInconsistent):
        return None


async def fetch_own_safe(context: RelayerContext, wallet: Address, owner: Address) -> SafeState:
    """Return the state of the owner's wallet, or refuse one that is not the owner's alone now."""
    state = await fetch_safe(context, wallet)
    if state is None:
        raise InvalidField("proxyWallet", "a Safe that is deployed")
    if not state.is_owned_by(owner) or state.nonce > NONCE_MAX:
        raise InvalidField("proxyWallet", "a Safe that from alone controls")
    return state


async def check_holdings(context: RelayerContext, judged: CheckedSubmission) -> None:
    """Refuse to redeem nothing, and to merge more than there is."""
    for call in judged.calls:
        if isinstance(call, RedeemPositions):
            await _check_redeem(context, judged.wish, call)
        elif isinstance(call, MergePositions):
            await _check_merge(context, judged.wish, call)


async def _check_redeem(context: RelayerContext, wish: Submission, call: RedeemPositions) -> None:
    """Burning what lost is the owner's right; a call that burns nothing only costs gas."""
    tokens = _tokens(call.collateral, call.condition_id, call.index_sets)
    wallets = (wish.wallet, wish.owner)
    units = await context.reader.token_units(
        [(wallet, token) for wallet in wallets for token in tokens]
    )
    if not any(units[: len(tokens)]):
        raise NothingToRedeem(wish.wallet, wish.owner if any(units[len(tokens) :]) else None)


async def _check_merge(context: RelayerContext, wish: Submission, call: MergePositions) -> None:
    tokens = _tokens(call.collateral, call.condition_id, call.partition)
    have = min(await context.reader.token_units([(wish.wallet, token) for token in tokens]))
    if have < call.amount_units:
        raise NotEnoughToMerge(have, call.amount_units)


def _tokens(collateral: Address, condition: Bytes32, index_sets: tuple[int, ...]) -> list[str]:
    return [
        str(token_id(collateral, collection_id(condition, index_set))) for index_set in index_sets
    ]
