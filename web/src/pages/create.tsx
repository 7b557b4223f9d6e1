// The creation of markets: a draft that is checked while it is written, then its transactions.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { useConfig } from "../lib/context";
import { t } from "../strings";
import { Empty, Problem } from "../ui/parts";
import { type Unfinished, type Verdict, beginCreation, readUnfinished, validatePayload } from "../wallet/creation";
import { forgetPictures } from "../lib/pictures";
import { type Session, useSession } from "../wallet/session";
import { type MarketDraft, payloadOf, readDraft, slugOf, writeDraft } from "./create_draft";
import { DetailsStep, QuestionStep } from "./create_fields";
import { CreationProgress } from "./create_progress";
import { filesOf, usePictures } from "./create_pictures";
import { ReviewStep } from "./create_review";
import { ConnectPrompt } from "./ticket_setup";

const TYPING_MS = 400;
const STEPS = ["question", "details", "review"] as const;
const FIELDS = [["title", "slug", "yes", "no", "options", "game"], ["end", "tags", "source", "rules"]] as const;
const QUESTION_FIELDS = ["title", "slug", "binary", "options", "sports"];

export function CreatePage() {
  const { session } = useSession();
  const [unfinished, setUnfinished] = useState<Unfinished | null>(readUnfinished());
  return (
    <div className="page narrow stack loose">
      <div className="stack tight">
        <h1>{t.create.title}</h1>
        <p className="muted">{t.create.lead}</p>
      </div>
      {session === null ? <Empty title={t.create.noWallet}><ConnectPrompt /></Empty> : null}
      {session !== null && unfinished !== null ? <CreationProgress session={session} unfinished={unfinished} onEnd={() => setUnfinished(null)} /> : null}
      {session !== null && unfinished === null ? <Wizard session={session} onBegin={setUnfinished} /> : null}
    </div>
  );
}

function useVerdict(payload: string, isComplete: boolean) {
  const config = useConfig();
  const [settled, setSettled] = useState(payload);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(payload), TYPING_MS);
    return () => clearTimeout(timer);
  }, [payload]);
  return useQuery({
    queryKey: ["validate", settled],
    queryFn: () => validatePayload(config, settled),
    enabled: isComplete,
    placeholderData: (before: Verdict | undefined) => before,
  });
}

function Wizard({ session, onBegin }: { session: Session; onBegin: (unfinished: Unfinished) => void }) {
  const config = useConfig();
  const client = useQueryClient();
  const [draft, setDraft] = useState<MarketDraft>(readDraft);
  const [step, setStep] = useState(0);
  const [pictures, changePicture] = usePictures();
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const payload = payloadOf(draft, session.address, config.chainId);
  const verdict = useVerdict(payload, true);
  useEffect(() => writeDraft(draft), [draft]);
  const change = (part: Partial<MarketDraft>): void => {
    setDraft((before) => ({ ...before, ...part }));
    setTouched((before) => new Set([...before, ...Object.keys(part)]));
  };
  const problemOf = (field: string, name: string = field): string | null => {
    const found = verdict.data?.problems.find((each) => each.field === field || each.field.startsWith(`${field}/`));
    return found !== undefined && touched.has(name) ? found.message : null;
  };
  const next = async (): Promise<void> => {
    setTouched(new Set([...touched, ...FIELDS[step === 0 ? 0 : 1]]));
    setError(null);
    try {
      const found = await client.fetchQuery({ queryKey: ["validate", payload], queryFn: () => validatePayload(config, payload) });
      const isOpen = found.problems.some((each) => step > 0 || QUESTION_FIELDS.some((field) => each.field.startsWith(field)));
      if (!isOpen) setStep(step + 1);
    } catch (failure) {
      setError(failure);
    }
  };
  const create = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const begun = await beginCreation(config, session, payload, await filesOf(draft, pictures), draft.slug || slugOf(draft.title), draft.title);
      writeDraft(null);
      await forgetPictures();
      onBegin(begun);
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="card stack loose">
      <ol className="row wraps" aria-label={t.create.steps}>
        {STEPS.map((name, index) => (
          <li key={name} className={index === step ? "badge yes" : "badge"} aria-current={index === step ? "step" : undefined}>{index + 1}. {t.create.stepNames[name]}</li>
        ))}
      </ol>
      {verdict.isError ? <Problem error={verdict.error} onRetry={() => void verdict.refetch()} /> : null}
      {step === 0 ? <QuestionStep draft={draft} change={change} problemOf={problemOf} pictures={pictures} onPicture={changePicture} /> : null}
      {step === 1 ? <DetailsStep draft={draft} change={change} problemOf={problemOf} pictures={pictures} onPicture={changePicture} /> : null}
      {step === 2 ? <ReviewStep draft={draft} verdict={verdict.data} session={session} isBusy={isBusy} onCreate={() => void create()} /> : null}
      {error !== null ? <Problem error={error} /> : null}
      <div className="row spread">
        <button type="button" className="button quiet" disabled={step === 0 || isBusy} onClick={() => setStep(step - 1)}>{t.create.back}</button>
        {step < STEPS.length - 1 ? <button type="button" className="button solid" onClick={() => void next()}>{t.create.next}</button> : null}
      </div>
    </div>
  );
}
