// Amounts are whole base units (bigint); a million of them are one token or one collateral.

export const UNIT = 1_000_000n;
export const SIZE_STEP = 10_000n; // two decimals: at every tick such a size costs a whole number of units

/** Return the units in a decimal text, or null if it is no amount. */
export function parseUnits(text: string): bigint | null {
  const match = /^(\d{1,12})(?:[.,](\d{0,6}))?$/.exec(text.trim());
  if (match === null) return null;
  return BigInt(match[1] ?? "0") * UNIT + BigInt((match[2] ?? "").padEnd(6, "0"));
}

/** Return units as a decimal text without trailing zeros. */
export function unitsText(units: bigint): string {
  const sign = units < 0n ? "-" : "";
  const digits = (units < 0n ? -units : units).toString().padStart(7, "0");
  const fraction = digits.slice(-6).replace(/0+$/, "");
  return `${sign}${digits.slice(0, -6)}${fraction === "" ? "" : `.${fraction}`}`;
}

export function unitsOf(decimal: number): bigint {
  return BigInt(Math.round(decimal * 1_000_000));
}

export function numberOf(units: bigint): number {
  return Number(units) / 1_000_000;
}

export function floorTo(units: bigint, step: bigint): bigint {
  return units - (units % step);
}

export function ceilDivide(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b;
}

/** Return the tick size in units of a price: 0.01 is 10000. */
export function tickUnits(tickSize: number | string): bigint {
  return unitsOf(Number(tickSize));
}
