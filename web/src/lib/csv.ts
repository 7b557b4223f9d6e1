// Tables as CSV files (RFC 4180) that the browser downloads.

/** Return a cell; one that a spreadsheet would take for a formula begins with an apostrophe. */
function cell(value: string | number | null): string {
  const text = value === null ? "" : String(value);
  const safe = typeof value === "string" && /^[=+\-@\t]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

export function csv<Row extends object>(rows: Row[], columns: (keyof Row & string)[]): string {
  const lines = rows.map((row) => columns.map((name) => cell(row[name] as string | number | null)).join(","));
  return `${[columns.join(","), ...lines].join("\r\n")}\r\n`;
}

export function download(name: string, content: string): void {
  const url = URL.createObjectURL(new Blob([content], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
