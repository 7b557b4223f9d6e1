// Small parts that every page uses.

import { type ReactNode, useEffect, useRef, useState } from "react";

import { isShown } from "../lib/config";
import { useConfig } from "../lib/context";
import { Refusal } from "../lib/http";
import { navigate } from "../lib/router";
import { t } from "../strings";

export function Link({ to, children, ...rest }: { to: string; children: ReactNode } & Record<string, unknown>) {
  return (
    <a
      href={to}
      {...rest}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        navigate(to);
      }}
    >
      {children}
    </a>
  );
}

/** A picture, or the first letter of the title where there is none or it cannot be shown. */
export function Icon({ url, title, size = "" }: { url: string; title: string; size?: "large" | "mini" | "" }) {
  const config = useConfig();
  const [isBroken, setBroken] = useState(false);
  if (!isShown(config, url) || isBroken) {
    return <span className={`icon ${size}`} aria-hidden="true">{title.slice(0, 1).toUpperCase()}</span>;
  }
  return <img className={`icon ${size}`} src={url} alt="" loading="lazy" onError={() => setBroken(true)} />;
}

export function Skeleton({ height, count = 1 }: { height: string; count?: number }) {
  return (
    <div className="stack" role="status" aria-label={t.loading}>
      {Array.from({ length: count }, (_, index) => (
        <div key={index} className="skeleton" style={{ height }} />
      ))}
    </div>
  );
}

/** What went wrong, in the server's words with its cure, and a way on. */
export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const refusal = error instanceof Refusal ? error : null;
  const words = error instanceof Error ? error.message : String(error);
  return (
    <div className={`callout ${refusal?.isTemporary ? "caution" : "bad"}`} role="alert">
      <strong>{headline(refusal)}</strong>
      <span>{sentence(words)}</span>
      {refusal?.cure ? <span>{sentence(refusal.cure)}</span> : null}
      {refusal !== null && refusal.status !== 0 ? (
        <span className="small muted">{refusal.code} · {refusal.status}</span>
      ) : null}
      {onRetry ? (
        <span><button type="button" className="button slim" onClick={onRetry}>{t.retry}</button></span>
      ) : null}
    </div>
  );
}

function headline(refusal: Refusal | null): string {
  if (refusal === null) return t.problem.unexpected;
  if (refusal.status === 0) return t.problem.noAnswer;
  return t.problem.byStatus[refusal.status] ?? t.problem.refused;
}

export function sentence(words: string): string {
  const text = words.slice(0, 1).toUpperCase() + words.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="card stack" style={{ alignItems: "center", textAlign: "center" }}>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export interface TabItem {
  id: string;
  label: string;
}

export function Tabs({ items, selected, onSelect, label }: {
  items: TabItem[]; selected: string; onSelect: (id: string) => void; label: string;
}) {
  const move = (step: number): void => {
    const index = items.findIndex((item) => item.id === selected);
    const next = items[(index + step + items.length) % items.length];
    if (next !== undefined) {
      onSelect(next.id);
      document.getElementById(`tab-${label}-${next.id}`)?.focus();
    }
  };
  return (
    <div className="tabs" role="tablist" aria-label={label}>
      {items.map((item) => (
        <button
          key={item.id} id={`tab-${label}-${item.id}`} type="button" role="tab"
          aria-selected={item.id === selected} tabIndex={item.id === selected ? 0 : -1}
          onClick={() => onSelect(item.id)}
          onKeyDown={(event) => {
            if (event.key === "ArrowRight") move(1);
            if (event.key === "ArrowLeft") move(-1);
          }}
        >
          {item.label}
        </button>
      ))}
    </div>
  );
}

export function Segments<Value extends string>({ options, value, onChange, label }: {
  options: readonly { value: Value; label: string }[]; value: Value; onChange: (value: Value) => void; label: string;
}) {
  return (
    <div className="segments" role="group" aria-label={label}>
      {options.map((option) => (
        <button key={option.value} type="button" aria-pressed={option.value === value} onClick={() => onChange(option.value)}>
          {option.label}
        </button>
      ))}
    </div>
  );
}

/** A modal dialog; Escape, its button and a click beside it close it. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }) {
  const reference = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = reference.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={reference} aria-label={title} onCancel={onClose}
      onClick={(event) => {
        if (event.target === reference.current) onClose();
      }}
    >
      <div className="stack">
        <div className="row spread">
          <h2>{title}</h2>
          <button type="button" className="button quiet slim" onClick={onClose} aria-label={t.close}>✕</button>
        </div>
        {children}
      </div>
    </dialog>
  );
}

export function Field({ label, problem, hint, children }: {
  label: string; problem?: string | null | undefined; hint?: string; children: ReactNode;
}) {
  return (
    <div className="field">
      <label><span>{label}</span>{children}</label>
      {problem ? <span className="problem" role="alert">{problem}</span> : null}
      {hint && !problem ? <span className="hint">{hint}</span> : null}
    </div>
  );
}
