// The operator's page: whether the chain is followed, what waits, what is to be resolved, and who runs out of gas.

import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";

import { type Solvency, fetchSolvency } from "../api/data";
import { useConfig } from "../lib/context";
import { day, dollars, duration, shortAddress } from "../lib/format";
import { Refusal, request } from "../lib/http";
import type { OwnAnswer } from "../lib/own_routes";
import { readStored, writeStored } from "../lib/stored";
import { t } from "../strings";
import { Field, Link, Problem, Skeleton } from "../ui/parts";
import { sandboxToken } from "../wallet/sandbox";

type InstallationState = OwnAnswer<"get", "/operator/status">;

const STORED = "operator-token";
const WEI = 10n ** 14n;
const LOW_BALANCE = 0.05;

export function OperatorPage() {
  const config = useConfig();
  const [token, setToken] = useState(readStored("session", STORED) ?? (config.isSandbox ? sandboxToken() : null) ?? "");
  const state = useQuery({
    queryKey: ["operator", token],
    queryFn: () => request<InstallationState>("/operator/status", { headers: { authorization: `Bearer ${token}` } }),
    enabled: token !== "",
    refetchInterval: 5_000,
  });
  const isRefused = state.error instanceof Refusal && state.error.status === 401;
  return (
    <div className="page stack loose">
      <h1>{t.operator.title}</h1>
      {token === "" || isRefused ? <TokenForm onToken={(given) => { writeStored("session", STORED, given); setToken(given); }} /> : null}
      {state.isError ? <Problem error={state.error} onRetry={() => void state.refetch()} /> : null}
      {token !== "" && state.isPending ? <Skeleton height="6rem" count={3} /> : null}
      {state.data === undefined ? null : <State state={state.data} />}
    </div>
  );
}

function TokenForm({ onToken }: { onToken: (token: string) => void }) {
  const [typed, setTyped] = useState("");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onToken(typed.trim());
  };
  return (
    <form className="card stack" onSubmit={submit}>
      <Field label={t.operator.token} hint={t.operator.tokenHint}>
        <input className="input" type="password" autoComplete="off" value={typed} onChange={(event) => setTyped(event.target.value)} />
      </Field>
      <div><button type="submit" className="button solid" disabled={typed.trim() === ""}>{t.operator.open}</button></div>
    </form>
  );
}

function State({ state }: { state: InstallationState }) {
  const { chain, work, due, halts, accounts } = state;
  const solvency = useSolvency();
  const isWell = !chain.isBehind && work.every((each) => !each.isLate) && halts.length === 0 && solvency.data?.isSolvent !== false;
  return (
    <>
      <div className={`callout ${isWell ? "good" : "caution"}`} role="status"><strong>{isWell ? t.operator.well : t.operator.notWell}</strong></div>
      <div className="figures">
        <Figure label={t.operator.head} text={String(chain.headBlock)} />
        <Figure label={t.operator.indexed} text={String(chain.indexedBlock)} isBad={chain.isBehind} />
        <Figure label={t.operator.waiting} text={String(work.reduce((sum, each) => sum + each.count, 0))} />
        <Figure label={t.operator.due} text={String(due.length)} isBad={due.length > 0} />
        <Figure label={t.operator.halts} text={String(halts.length)} isBad={halts.length > 0} />
      </div>
      <section className="card stack">
        <h2>{t.operator.solvency}</h2>
        {solvency.isError ? <Problem error={solvency.error} onRetry={() => void solvency.refetch()} /> : null}
        {solvency.data === undefined ? null : <SolvencyTable total={solvency.data} />}
      </section>
      {halts.length === 0 ? null : (
        <section className="card stack">
          <h2>{t.operator.haltsTitle}</h2>
          <p className="muted small">{t.operator.haltsText}</p>
          <ul className="stack tight">
            {halts.map((each) => <li key={each.conditionId} className="row spread wraps"><Link to={`/event/${each.eventSlug}`} className="link">{each.question}</Link><span className="muted small">{t.operator.halted(duration(state.serverMs - each.sinceMs))}</span></li>)}
          </ul>
        </section>
      )}
      <section className="card stack">
        <h2>{t.operator.queues}</h2>
        {work.length === 0 ? <p className="muted">{t.operator.noQueues}</p> : (
          <div className="scrolls"><table>
            <thead><tr><th>{t.operator.kind}</th><th>{t.operator.status}</th><th className="number">{t.operator.count}</th><th className="number">{t.operator.oldest}</th></tr></thead>
            <tbody>
              {work.map((each) => (
                <tr key={`${each.kind}-${each.status}`}><td>{each.kind}</td><td>{each.status}</td><td className="number">{each.count}</td><td className={`number ${each.isLate ? "no" : ""}`}>{duration(each.oldestAgeMs)}</td></tr>
              ))}
            </tbody>
          </table></div>
        )}
      </section>
      <section className="card stack">
        <h2>{t.operator.dueTitle}</h2>
        {due.length === 0 ? <p className="muted">{t.operator.noDue}</p> : (
          <ul className="stack tight">
            {due.map((each) => <li key={each.conditionId} className="row spread wraps"><Link to={`/event/${each.eventSlug}`} className="link">{each.question}</Link><span className="muted small">{t.operator.ended(day(new Date(each.endedAtMs).toISOString()))}</span></li>)}
          </ul>
        )}
      </section>
      <Accounts accounts={accounts} />
    </>
  );
}

function useSolvency() {
  const config = useConfig();
  return useQuery({
    queryKey: ["solvency"],
    queryFn: () => fetchSolvency(config),
    refetchInterval: 15_000,
  });
}

function SolvencyTable({ total }: { total: Solvency }) {
  return (
    <>
      <p className={total.isSolvent ? "yes" : "no"}>{total.isSolvent ? t.operator.solvent(total.conditions, total.block) : t.operator.deficit(dollars(total.deficit), total.shortConditions)}</p>
      <div className="scrolls"><table>
        <thead><tr><th>{t.operator.pool}</th><th className="number">{t.operator.held}</th><th className="number">{t.operator.owed}</th><th className="number">{t.operator.missing}</th></tr></thead>
        <tbody>
          {total.pools.map((pool) => (
            <tr key={pool.name}><td>{t.operator.pools[pool.name] ?? pool.name}</td><td className="number">{dollars(pool.held)}</td><td className="number">{dollars(pool.owed)}</td><td className={`number ${pool.deficit > 0 ? "no" : ""}`}>{dollars(pool.deficit)}</td></tr>
          ))}
        </tbody>
      </table></div>
    </>
  );
}

function Accounts({ accounts }: { accounts: InstallationState["accounts"] }) {
  return (
    <section className="card stack">
      <h2>{t.operator.accounts}</h2>
      {accounts.length === 0 ? <p className="muted">{t.operator.noAccounts}</p> : (
        <div className="scrolls"><table>
          <thead><tr><th>{t.operator.product}</th><th>{t.wallet.address}</th><th className="number">{t.operator.gas}</th></tr></thead>
          <tbody>
            {accounts.map((each) => {
              const balance = Number(BigInt(each.balanceWei) / WEI) / 10_000;
              return <tr key={each.product + each.address}><td>{each.product}</td><td title={each.address}>{shortAddress(each.address)}</td><td className={`number ${balance < LOW_BALANCE ? "no" : ""}`}>{balance}</td></tr>;
            })}
          </tbody>
        </table></div>
      )}
    </section>
  );
}

function Figure({ label, text, isBad = false }: { label: string; text: string; isBad?: boolean }) {
  return <div className="card stack tight"><span className="muted small">{label}</span><span className={`figure lesser ${isBad ? "caution" : ""}`}>{text}</span></div>;
}
