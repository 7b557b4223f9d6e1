"""Notifications as clients read them."""

import enum
from typing import Final

import msgspec

from foretell.domain.values.amounts import decimal_text, price_text
from foretell.store.queries.market_listings import Listing
from foretell.store.trading.orders import OrderRow

ID_DIGITS: Final = 32
"""Of the hash of an order, in the id of a notification."""


class NotificationType(enum.IntEnum):
    """The types that are published; clients know others too."""

    ORDER_CANCELED = 1
    ORDER_FILLED = 2
    MARKET_RESOLVED = 4
    FILL_FAILED = 8


class NotificationPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The order or the market that a notification is about; what does not apply is empty."""

    asset_id: str = ""
    market: str = ""
    condition_id: str = ""
    order_id: str = ""
    side: str = ""
    type: str = ""
    price: str = ""
    original_size: str = ""
    matched_size: str = ""
    remaining_size: str = ""
    outcome: str = ""
    outcome_index: int | None = None
    trade_id: str = ""
    transaction_hash: str = ""
    close_reason: str = ""
    err_msg: str = ""
    code: str = ""
    question: str = ""
    market_slug: str = ""
    event_slug: str = msgspec.field(name="eventSlug", default="")
    series_slug: str = msgspec.field(name="seriesSlug", default="")
    icon: str = ""
    image: str = ""
    owner: str = ""


class NotificationRecord(msgspec.Struct, frozen=True):
    """Something that happened to an account, once."""

    id: str
    type: int
    owner: str
    payload: NotificationPayload
    timestamp: int


class Fact(msgspec.Struct, frozen=True):
    """A notification with its time in milliseconds."""

    record: NotificationRecord
    at_ms: int

    @property
    def type(self) -> int:
        """The type of the notification."""
        return self.record.type


def a_fact(
    kind: NotificationType, name: str, at_ms: int, owner: str, payload: NotificationPayload
) -> Fact:
    """Return a notification; its name is the same whenever it is made."""
    record = NotificationRecord(f"{kind.value}-{name}", kind.value, owner, payload, at_ms // 1000)
    return Fact(record, at_ms)


def market_payload(listing: Listing | None, condition_id: str) -> NotificationPayload:
    """Return what a payload says of a market."""
    if listing is None:
        return NotificationPayload(market=condition_id, condition_id=condition_id)
    return NotificationPayload(
        market=condition_id,
        condition_id=condition_id,
        question=listing.question,
        market_slug=listing.slug,
        event_slug=listing.event_slug,
        icon=listing.icon,
        image=listing.event_image,
    )


def order_payload(
    market: NotificationPayload, row: OrderRow, outcome: str, matched_units: int
) -> NotificationPayload:
    """Return what a payload says of an order, `matched_units` of which this notification is about."""
    return msgspec.structs.replace(
        market,
        asset_id=row.signed.token_id,
        order_id=row.order_id,
        side=row.signed.side.name,
        type=row.order_type.value,
        price=price_text(row.price_ticks, row.ticks_per_one),
        original_size=decimal_text(row.size_units),
        matched_size=decimal_text(matched_units),
        remaining_size=decimal_text(max(0, row.size_units - row.matched_units)),
        outcome=outcome,
        outcome_index=0 if row.is_yes else 1,
        close_reason=row.close_reason or "",
        owner=row.owner,
    )


def short(word: str) -> str:
    """Return the first digits of a hash."""
    return word[2 : 2 + ID_DIGITS]
