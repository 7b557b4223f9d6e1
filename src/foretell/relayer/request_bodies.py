"""Bodies of submissions, for the relayer's document; `body` parses them field by field."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

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


SubmissionBody = SafeBody | SafeCreateBody
