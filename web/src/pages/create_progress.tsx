// A creation that is under way: its steps, and what the user can do; it goes on after a reload.

import { useCallback, useEffect, useRef, useState } from "react";

import { useConfig } from "../lib/context";
import { forgetPictures } from "../lib/pictures";
import { t } from "../strings";
import { Link, Problem } from "../ui/parts";
import { type Progress, type Unfinished, continueCreation, writeUnfinished } from "../wallet/creation";
import { WalletProblem } from "../wallet/provider";
import type { Session } from "../wallet/session";
import { writeDraft } from "./create_draft";

const MARKS: Record<string, string> = { done: "✓", failed: "!" };

export function CreationProgress({ session, unfinished, onEnd }: { session: Session; unfinished: Unfinished; onEnd: () => void }) {
  const config = useConfig();
  const [progress, setProgress] = useState<Progress | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isDone, setDone] = useState(false);
  const isRunning = useRef(false);
  const isOther = session.address.toLowerCase() !== unfinished.creator.toLowerCase();
  const run = useCallback(async (): Promise<void> => {
    if (isRunning.current || isOther) return;
    isRunning.current = true;
    setError(null);
    try {
      await continueCreation(config, session, unfinished, setProgress);
      writeUnfinished(null);
      writeDraft(null);
      await forgetPictures();
      setDone(true);
    } catch (failure) {
      setError(failure);
    } finally {
      isRunning.current = false;
    }
  }, [config, session, unfinished, isOther]);
  useEffect(() => void run(), [run]);
  const abandon = (): void => {
    writeUnfinished(null);
    onEnd();
  };
  if (isDone) {
    return (
      <div className="card stack">
        <h2>{t.create.done}</h2>
        <p>{t.create.doneText(unfinished.title)}</p>
        <div className="row">
          <Link to={`/event/${unfinished.slug}`} className="button solid">{t.create.open}</Link>
          <button type="button" className="button" onClick={onEnd}>{t.create.another}</button>
        </div>
      </div>
    );
  }
  return (
    <div className="card stack">
      <h2>{t.create.under(unfinished.title)}</h2>
      {isOther ? <Problem error={new WalletProblem(t.create.otherCreator(unfinished.creator))} /> : null}
      <Steps progress={progress} />
      {error !== null ? <Problem error={error} onRetry={() => void run()} /> : null}
      {error !== null || isOther ? <div><button type="button" className="button quiet" onClick={abandon}>{t.create.abandon}</button></div> : null}
    </div>
  );
}

function Steps({ progress }: { progress: Progress | null }) {
  const steps = progress?.record.steps ?? [];
  return (
    <ol className="steps" aria-live="polite">
      {steps.map((step) => (
        <li key={step.step} className="step" data-state={step.state === "waiting" ? "running" : step.state}>
          <i aria-hidden="true">{MARKS[step.state] ?? ""}</i>
          <span className="stack tight">
            <span>{t.create.creationSteps[step.step] ?? step.step}</span>
            {step.message !== null && (step.state === "failed" || (step.state === "waiting" && step.step !== "transactions")) ? <span className="muted small">{step.message}</span> : null}
            {step.step === "transactions" && progress?.sending != null ? (
              <span className="small">{t.create.sending(progress.sending, progress.sent + 1, progress.planned)}</span>
            ) : null}
          </span>
          <span className="muted small">{t.create.states[step.state]}</span>
        </li>
      ))}
    </ol>
  );
}
