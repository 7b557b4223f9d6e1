"""Bodies of submissions, for the relayer's document; `body` parses them field by field."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foretell.domain.contracts.deposit_wallet import CALLS_PER_BATCH_MAX
from foretell.relayer.body import METADATA_CHARS_MAX

Address = Annotated[str, Meta(pattern="^0x[0-9a-fA-F]{40}$")]
Digits = Annotated[str, Meta(pattern="^(?:0|[1-9][0-9]{0,18})$")]
Hex = Annotated[str, Meta(pattern="^0x(?:[0-9a-fA-F]{2})*$")]
Label = Annotated[str, Meta(max_length=METADATA_CHARS_MAX)]
Zero = Literal["0"]
ZeroAddress = Annotated[str, Meta(pattern="^0x0{40}$")]


class SafeParams(msgspec.Struct, rename="camel", kw_only=True):
    """What the owner signed beside the call: the relayer pays for gas, so all but `operation` are zero."""

    operation: Literal["0", "1"]
    safe_txn_gas: Zero
    base_gas: Zero
    gas_price: Zero
    gas_token: ZeroAddress
    refund_receiver: ZeroAddress


class SafeBody(msgspec.Struct, rename="camel", kw_only=True, tag="SAFE", tag_field="type"):
    """A transaction of a Safe that its owner signed."""

    owner: Address = msgspec.field(name="from")
    to: Address
    proxy_wallet: Address
    data: Hex
    nonce: Digits
    signature: Hex
    signature_params: SafeParams
    value: Zero | UnsetType = UNSET
    metadata: Label | UnsetType | None = UNSET


class CreateParams(msgspec.Struct, rename="camel", kw_only=True):
    """What the owner signed: a deployment costs it nothing, so all are zero."""

    payment_token: ZeroAddress
    payment: Zero
    payment_receiver: ZeroAddress


class SafeCreateBody(
    msgspec.Struct, rename="camel", kw_only=True, tag="SAFE-CREATE", tag_field="type"
):
    """The deployment of an owner's Safe."""

    owner: Address = msgspec.field(name="from")
    to: Address
    proxy_wallet: Address
    data: Literal["0x"]
    signature: Hex
    signature_params: CreateParams
    metadata: Label | UnsetType | None = UNSET


class DeploymentBody(CreateParams, kw_only=True):
    """The deployment of an owner's Safe, in short."""

    owner: Address
    signature: Hex


class CallBody(msgspec.Struct, rename="camel", kw_only=True):
    """A call of a batch."""

    target: Address
    value: Zero
    data: Hex


class BatchParams(msgspec.Struct, rename="camel", kw_only=True):
    """What the owner signed: the wallet, the last second of the batch, and its calls."""

    deposit_wallet: Address
    deadline: Digits
    calls: Annotated[list[CallBody], Meta(min_length=1, max_length=CALLS_PER_BATCH_MAX)]


class WalletBody(msgspec.Struct, rename="camel", kw_only=True, tag="WALLET", tag_field="type"):
    """A batch of calls of a deposit wallet that its owner signed."""

    owner: Address = msgspec.field(name="from")
    to: Address
    nonce: Digits
    signature: Hex
    deposit_wallet_params: BatchParams
    metadata: Label | UnsetType | None = UNSET


class WalletCreateBody(
    msgspec.Struct, rename="camel", kw_only=True, tag="WALLET-CREATE", tag_field="type"
):
    """The deployment of an owner's deposit wallet; nothing is signed for it."""

    owner: Address = msgspec.field(name="from")
    to: Address
    metadata: Label | UnsetType | None = UNSET


class ProxyParams(msgspec.Struct, rename="camel", kw_only=True):
    """What the owner signed beside the calls: the relayer pays for gas, so price and fee are zero."""

    gas_price: Zero
    gas_limit: Digits
    relayer_fee: Zero
    relay_hub: Address
    relay: Address


class ProxyBody(msgspec.Struct, rename="camel", kw_only=True, tag="PROXY", tag_field="type"):
    """Calls of a proxy wallet that its owner signed."""

    owner: Address = msgspec.field(name="from")
    to: Address
    proxy_wallet: Address
    data: Hex
    nonce: Digits
    signature: Hex
    signature_params: ProxyParams
    value: Zero | UnsetType = UNSET
    metadata: Label | UnsetType | None = UNSET


SubmissionBody = SafeBody | SafeCreateBody | WalletBody | WalletCreateBody | ProxyBody
