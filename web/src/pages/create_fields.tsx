// The fields of a draft: the question with its outcomes, then everything that decides it.

import { t } from "../strings";
import { ImageCrop } from "../ui/image_crop";
import { Field, Segments } from "../ui/parts";
import { type Kind, type MarketDraft, MAIN_CATEGORIES, newOption, slugOf, tagsOf } from "./create_draft";
import { GameFields } from "./create_game_fields";
import { type ChangePicture, type Pictures, EVENT_IMAGE, optionImage } from "./create_pictures";

const OPTIONS_MIN = 2;
const OPTIONS_MAX = 60;
const RULES_MIN = 60;
const OPTION_SIDE = 72;

export interface FieldsProps {
  draft: MarketDraft;
  change: (part: Partial<MarketDraft>) => void;
  problemOf: (field: string, name?: string) => string | null;
}

interface PicturedProps extends FieldsProps {
  pictures: Pictures;
  onPicture: ChangePicture;
}

export function QuestionStep({ draft, change, problemOf, pictures, onPicture }: PicturedProps) {
  const modes: readonly { value: Kind; label: string }[] = [
    { value: "binary", label: t.create.modes.binary },
    { value: "multi_unique", label: t.create.modes.multi_unique },
    { value: "multi_multiple", label: t.create.modes.multi_multiple },
    { value: "sports", label: t.create.modes.sports },
  ];
  return (
    <div className="stack">
      <Segments options={modes} value={draft.mode} onChange={(mode) => change({ mode })} label={t.create.mode} />
      <p className="muted small">{t.create.modeHints[draft.mode]}</p>
      <Field label={draft.mode === "binary" ? t.create.question : t.create.eventTitle} problem={problemOf("title")}>
        <input className="input" value={draft.title} maxLength={300} placeholder={draft.mode === "sports" ? t.create.gameExample : t.create.questionExample} onChange={(event) => change({ title: event.target.value })} />
      </Field>
      <Field label={t.create.slug} problem={problemOf("slug")} hint={t.create.slugHint}>
        <input className="input" value={draft.slug} maxLength={128} placeholder={slugOf(draft.title)} onChange={(event) => change({ slug: event.target.value })} />
      </Field>
      {draft.mode === "binary" ? (
        <div className="row">
          <div className="grow"><Field label={t.create.firstOutcome} problem={problemOf("binaryOutcomeYes", "yes")}><input className="input" value={draft.yes} maxLength={60} onChange={(event) => change({ yes: event.target.value })} /></Field></div>
          <div className="grow"><Field label={t.create.secondOutcome} problem={problemOf("binaryOutcomeNo", "no")}><input className="input" value={draft.no} maxLength={60} onChange={(event) => change({ no: event.target.value })} /></Field></div>
        </div>
      ) : null}
      {draft.mode === "sports" ? <GameFields draft={draft} change={change} problemOf={problemOf} pictures={pictures} onPicture={onPicture} /> : null}
      {draft.mode === "multi_unique" || draft.mode === "multi_multiple" ? <Options draft={draft} change={change} problemOf={problemOf} pictures={pictures} onPicture={onPicture} /> : null}
    </div>
  );
}

function Options({ draft, change, problemOf, pictures, onPicture }: PicturedProps) {
  const set = (index: number, part: Partial<MarketDraft["options"][number]>): void =>
    change({ options: draft.options.map((option, each) => (each === index ? { ...option, ...part } : option)) });
  const remove = (id: string): void => {
    onPicture(optionImage(id), null);
    change({ options: draft.options.filter((option) => option.id !== id) });
  };
  return (
    <fieldset className="stack">
      <legend>{t.create.options}</legend>
      {draft.options.map((option, index) => (
        <div key={option.id} className="card stack">
          <div className="pair">
          <Field label={t.create.optionName(index + 1)} problem={problemOf(`options/${index}/title`, "options") ?? problemOf(`options/${index}/slug`, "options")}>
            <input className="input" value={option.title} maxLength={60} onChange={(event) => set(index, { title: event.target.value })} />
          </Field>
          <Field label={t.create.optionQuestion} problem={problemOf(`options/${index}/question`, "options")}>
            <input className="input" value={option.question} maxLength={500} placeholder={t.create.optionQuestionHint} onChange={(event) => set(index, { question: event.target.value })} />
          </Field>
          </div>
          <ImageCrop side={OPTION_SIDE} title={option.title} label={t.create.optionPicture} picture={pictures[optionImage(option.id)]} onPicture={(picture) => onPicture(optionImage(option.id), picture)} />
          <div><button type="button" className="button" disabled={draft.options.length <= OPTIONS_MIN} onClick={() => remove(option.id)}>{t.create.removeOption}</button></div>
        </div>
      ))}
      <div><button type="button" className="button" disabled={draft.options.length >= OPTIONS_MAX} onClick={() => change({ options: [...draft.options, newOption(draft.options)] })}>{t.create.addOption}</button></div>
    </fieldset>
  );
}

export function DetailsStep({ draft, change, problemOf, pictures, onPicture }: PicturedProps) {
  return (
    <div className="stack">
      <Field label={t.create.end} problem={problemOf("endDateIso", "end")} hint={t.create.endHint}>
        <input className="input" type="datetime-local" value={draft.end} onChange={(event) => change({ end: event.target.value })} />
      </Field>
      {draft.mode === "sports" ? null : <Field label={t.create.category}>
        <select className="input" value={draft.category} onChange={(event) => change({ category: event.target.value })}>
          {MAIN_CATEGORIES.map((name) => <option key={name} value={name}>{t.create.categories[name]}</option>)}
        </select>
      </Field>}
      <Field label={t.create.tags} problem={problemOf("categories", "tags")} hint={t.create.tagsHint(tagsOf(draft).length)}>
        <input className="input" value={draft.tags} placeholder={t.create.tagsExample} onChange={(event) => change({ tags: event.target.value })} />
      </Field>
      <Field label={t.create.rules} problem={problemOf("resolutionRules", "rules")} hint={t.create.rulesHint([...draft.rules.trim()].length, RULES_MIN)}>
        <textarea className="input" value={draft.rules} onChange={(event) => change({ rules: event.target.value })} />
      </Field>
      <Field label={t.create.source} problem={problemOf("resolutionSource", "source")}>
        <input className="input" type="url" value={draft.source} placeholder="https://" onChange={(event) => change({ source: event.target.value })} />
      </Field>
      <fieldset className="stack tight">
        <legend>{t.create.resolution}</legend>
        <Segments
          options={[{ value: "dro_moov2", label: t.create.resolutions.dro_moov2 }, { value: "alt_moov2", label: t.create.resolutions.alt_moov2 }] as const}
          value={draft.resolution} onChange={(resolution) => change({ resolution })} label={t.create.resolution}
        />
        <p className="muted small">{t.create.resolutionHints[draft.resolution]}</p>
      </fieldset>
      <ImageCrop title={draft.title} label={t.create.picture} hint={t.create.pictureHint} picture={pictures[EVENT_IMAGE]} onPicture={(picture) => onPicture(EVENT_IMAGE, picture)} />
    </div>
  );
}
