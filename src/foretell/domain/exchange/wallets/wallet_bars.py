"""Decisions about wallets that make settlements fail when they are mined: bars, probes and their gas.

A wallet is barred once it is proved that it made a transaction fail, or once such transactions have cost the
operator more gas in a day than one wallet may. A probe that is mined ends the bar. Each offence doubles
the time until the next probe.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from foretell.domain.exchange.commands import BarWallet
from foretell.domain.exchange.settlement import WALLET_GAS_MIN, doubled_ms
from foretell.domain.values.call_trace import FailedCall
from foretell.domain.values.hexadecimal import Address

DAY_MS: Final = 24 * 3600 * 1000
CAUSE_CHARS_MAX: Final = 200
DOUBLED_TIMES_MAX: Final = 32
PROBE_PREFIX: Final = "probe:"


@dataclass(frozen=True, slots=True)
class BarOptions:
    """Limits and delays of bars."""

    gas_per_day_max: int = 10_000_000
    """Most gas that failed settlements of one wallet may cost in a day of UTC; 0 for any."""
    probe_delay_ms: int = 10 * 60 * 1000
    """Time from the first offence to its probe; it doubles with each further offence."""
    probe_delay_ms_max: int = 7 * DAY_MS
    forgotten_ms: int = 30 * DAY_MS
    """A wallet that gave no offence for so long is treated as one that never did."""


class WalletBar(NamedTuple):
    """The bar of a wallet, or what is remembered of one that has ended.

    Without `probe_at_ms` only the operator ends it. `probes` counts the probes that were sent, and
    `probe_tx_id` is the transaction of one that is not final.
    """

    wallet: Address
    is_barred: bool
    cause: str
    offences: int
    barred_at_ms: int
    probe_at_ms: int | None
    probes: int = 0
    probe_tx_id: str | None = None


class Offence(NamedTuple):
    """A settlement that one wallet made fail, and what it cost.

    `is_reverting` when the wallet's own code failed, which bars it at once. Otherwise it could not pay
    in the block: that is barred only by its cost.
    """

    wallet: Address
    is_reverting: bool
    gas: int
    cause: str


def unpaying_wallet(
    failed: Sequence[FailedCall], wallets: Collection[Address], assets: Collection[Address]
) -> Address | None:
    """Return the wallet that could not pay in a mined transaction, or None when that is not why it failed.

    The call that failed first is a transfer from that wallet by a token of the exchange; no other contract
    shows anything by the words that it is called with.
    """
    if not failed or failed[-1].target not in assets or failed[-1].gas < WALLET_GAS_MIN:
        return None
    payer = failed[-1].payer
    return payer if payer in wallets else None


def day_of(now_ms: int) -> int:
    """Return the number of a day of UTC."""
    return now_ms // DAY_MS


def bar_after(
    known: WalletBar | None,
    offence: Offence,
    gas_of_day: int,
    now_ms: int,
    options: BarOptions,
) -> WalletBar | None:
    """Return the bar of a wallet after an offence, None if it is not barred for it.

    `gas_of_day` includes the offence. A bar by the operator stays as it is.
    """
    is_costly = 0 < options.gas_per_day_max < gas_of_day
    if not offence.is_reverting and not is_costly:
        return None
    if known is not None and known.is_barred and known.probe_at_ms is None:
        return None
    cause = offence.cause
    if not offence.is_reverting:
        cause = f"its failed settlements cost {gas_of_day} gas in a day"
    is_known = known is not None and now_ms - known.barred_at_ms < options.forgotten_ms
    offences = known.offences + 1 if known is not None and is_known else 1
    return WalletBar(
        wallet=offence.wallet,
        is_barred=True,
        cause=cause[:CAUSE_CHARS_MAX],
        offences=offences,
        barred_at_ms=now_ms,
        probe_at_ms=now_ms + _delay_ms(offences, options),
        probes=0 if known is None else known.probes,
    )


def probed(bar: WalletBar) -> WalletBar:
    """Return a bar with the id of the transaction of its next probe.

    The id has the number of the probe, so after a crash the same transaction is found or sent.
    """
    probes = bar.probes + 1
    return bar._replace(probes=probes, probe_tx_id=f"{PROBE_PREFIX}{bar.wallet}:{probes}")


def ended(bar: WalletBar) -> WalletBar:
    """Return a bar whose wallet passed its probe; its offences are remembered."""
    return bar._replace(is_barred=False, probe_tx_id=None)


def kept(bar: WalletBar, cause: str, now_ms: int, options: BarOptions) -> WalletBar:
    """Return a bar whose wallet failed its probe: it is probed again after twice the time."""
    offences = bar.offences + 1
    return bar._replace(
        cause=cause[:CAUSE_CHARS_MAX],
        offences=offences,
        probe_at_ms=now_ms + _delay_ms(offences, options),
        probe_tx_id=None,
    )


def postponed(bar: WalletBar, now_ms: int, options: BarOptions) -> WalletBar:
    """Return a bar whose probe said nothing, such as one that the node refused: it is sent later."""
    return bar._replace(probe_at_ms=now_ms + options.probe_delay_ms, probe_tx_id=None)


def barred_by_operator(
    known: WalletBar | None, wallet: Address, cause: str, now_ms: int
) -> WalletBar:
    """Return a bar that only the operator ends."""
    return WalletBar(
        wallet=wallet,
        is_barred=True,
        cause=cause[:CAUSE_CHARS_MAX],
        offences=0 if known is None else known.offences,
        barred_at_ms=now_ms,
        probe_at_ms=None,
        probes=0 if known is None else known.probes,
    )


def ended_by_operator(known: WalletBar | None, wallet: Address, now_ms: int) -> WalletBar:
    """Return the row of a wallet whose bar the operator ended: its offences are forgotten.

    A wallet without a row gets one, since the engine may know of a bar that a restored database lacks.
    """
    probes = 0 if known is None else known.probes
    return WalletBar(
        wallet,
        is_barred=False,
        cause="",
        offences=0,
        barred_at_ms=now_ms,
        probe_at_ms=None,
        probes=probes,
    )


def bars_of(known: Mapping[Address, str], bars: Iterable[WalletBar], at_ms: int) -> list[BarWallet]:
    """Return the commands that bring an engine's bars up to these rows."""
    wanted = {bar.wallet: bar for bar in bars}
    return [
        BarWallet(at_ms, bar.wallet, bar.is_barred, bar.cause)
        for bar in wanted.values()
        if (known.get(bar.wallet) != bar.cause if bar.is_barred else bar.wallet in known)
    ]


def _delay_ms(offences: int, options: BarOptions) -> int:
    assert offences > 0
    doubled = min(offences - 1, DOUBLED_TIMES_MAX)
    return doubled_ms(options.probe_delay_ms, doubled, options.probe_delay_ms_max)
