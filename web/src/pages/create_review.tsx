// The last step of a draft: what will happen, what it costs, and whether the wallet can pay it.

import { useConfig } from "../lib/context";
import { day, dollars } from "../lib/format";
import { t } from "../strings";
import { Problem, Skeleton } from "../ui/parts";
import type { Verdict } from "../wallet/creation";
import { WalletProblem } from "../wallet/provider";
import { type Session, useSession } from "../wallet/session";
import { type MarketDraft, endOf } from "./create_draft";

export function ReviewStep({ draft, verdict, session, isBusy, onCreate }: {
  draft: MarketDraft; verdict: Verdict | undefined; session: Session; isBusy: boolean; onCreate: () => void;
}) {
  if (verdict === undefined) return <Skeleton height="8rem" />;
  const fees = verdict.fees;
  const isFunded = fees === undefined || Number(fees.creatorHolds) >= Number(fees.total);
  const isReady = verdict.valid && verdict.creatorIsWhitelisted === true && isFunded;
  return (
    <div className="stack">
      <h2>{draft.title}</h2>
      <dl className="facts">
        <dt>{t.create.end}</dt><dd>{day(endOf(draft))}</dd>
        <dt>{t.create.markets}</dt><dd>{verdict.markets?.length ?? "–"}</dd>
        {fees === undefined ? null : (
          <>
            <dt>{t.create.fee}</dt><dd>{dollars(Number(fees.feePerMarket))}</dd>
            {Number(fees.rewardPerMarket) > 0 ? <><dt>{t.create.reward}</dt><dd>{dollars(Number(fees.rewardPerMarket))}</dd></> : null}
            <dt>{t.create.total}</dt><dd>{dollars(Number(fees.total))}</dd>
            <dt>{t.create.holds}</dt><dd className={isFunded ? "" : "no"}>{dollars(Number(fees.creatorHolds))}</dd>
          </>
        )}
      </dl>
      {(verdict.markets?.length ?? 0) > 1 ? (
        <details className="card">
          <summary>{t.create.questionsOf(verdict.markets?.length ?? 0)}</summary>
          <ul className="stack tight" style={{ marginTop: "var(--s3)" }}>{verdict.markets?.map((market) => <li key={market.marketKey}>{market.question}</li>)}</ul>
        </details>
      ) : null}
      <ol className="stack tight">
        {t.create.planWords(verdict.markets?.length ?? 1, draft.mode === "multi_unique").map((words, index) => <li key={words} className="row"><span className="badge">{index + 1}</span><span>{words}</span></li>)}
      </ol>
      {verdict.problems.map((problem) => <Problem key={problem.pointer} error={new WalletProblem(`${problem.field}: ${problem.message}`)} />)}
      {verdict.duplicates.length > 0 ? <Problem error={new WalletProblem(t.create.duplicate)} /> : null}
      {verdict.creatorIsWhitelisted === false ? <NotWhitelisted /> : null}
      {isFunded ? null : <Problem error={new WalletProblem(t.create.underfunded)} />}
      <button type="button" className="button solid full" disabled={!isReady || isBusy} onClick={onCreate}>
        {isBusy ? t.create.signing : t.create.submit(session.label)}
      </button>
    </div>
  );
}

/** The way on for a wallet that may not create: in the sandbox, the creator's. */
function NotWhitelisted() {
  const config = useConfig();
  const { sandbox, connectSandbox } = useSession();
  const creator = sandbox.find((account) => account.role === "creator");
  return (
    <div className="callout caution" role="alert">
      <strong>{t.create.notWhitelisted}</strong>
      <span>{config.isSandbox ? t.create.notWhitelistedSandbox : t.create.notWhitelistedHint}</span>
      {creator === undefined ? null : <span><button type="button" className="button slim" onClick={() => void connectSandbox(creator)}>{t.create.useCreator}</button></span>}
    </div>
  );
}
