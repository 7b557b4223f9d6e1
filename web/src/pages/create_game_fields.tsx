// The fields of a game: its teams, its start, the standard markets and lines, and markets of its own.

import { t } from "../strings";
import { ImageCrop } from "../ui/image_crop";
import { Field } from "../ui/parts";
import type { FieldsProps } from "./create_fields";
import { type GameDraft, type GameMarketDraft, GAME_MARKETS_MAX, endAfter, newGameMarket, shortOf, titleOf } from "./create_game";
import { type ChangePicture, type Pictures, optionImage, teamLogo } from "./create_pictures";

const LOGO_SIDE = 72;

interface GameProps extends FieldsProps {
  pictures: Pictures;
  onPicture: ChangePicture;
}

export function GameFields({ draft, change, problemOf, pictures, onPicture }: GameProps) {
  const { game } = draft;
  const set = (part: Partial<GameDraft>): void => {
    const next = { ...game, ...part };
    const isTitled = draft.title !== "" && draft.title !== titleOf(game);
    const end = endAfter(next.start, draft.end);
    change({ game: next, end, ...(isTitled ? {} : { title: titleOf(next) }) });
  };
  const sport = (field: string): string | null => problemOf(`sports/${field}`, "game");
  return (
    <fieldset className="stack loose">
      <legend>{t.create.game}</legend>
      <div className="pair">
        {(["home", "away"] as const).map((side, index) => (
          <div key={side} className="stack">
            <Field label={t.create.teams[side]} problem={sport(`teams/${index}/name`)}>
              <input className="input" value={game[side].name} maxLength={60} onChange={(event) => set({ [side]: { ...game[side], name: event.target.value } })} />
            </Field>
            <Field label={t.create.short[side]} problem={sport(`teams/${index}/abbreviation`)}>
              <input className="input" value={game[side].short} maxLength={16} placeholder={shortOf(game[side])} onChange={(event) => set({ [side]: { ...game[side], short: event.target.value } })} />
            </Field>
            <ImageCrop side={LOGO_SIDE} title={game[side].name} label={t.create.logos[side]} picture={pictures[teamLogo(side)]} onPicture={(picture) => onPicture(teamLogo(side), picture)} />
          </div>
        ))}
      </div>
      <div className="pair">
        <Field label={t.create.sport} problem={sport("sportSlug")}>
          <input className="input" value={game.sport} maxLength={60} placeholder={t.create.sportExample} onChange={(event) => set({ sport: event.target.value })} />
        </Field>
        <Field label={t.create.league} problem={sport("leagueSlug")}>
          <input className="input" value={game.league} maxLength={60} placeholder={t.create.leagueExample} onChange={(event) => set({ league: event.target.value })} />
        </Field>
        <Field label={t.create.start} problem={sport("startTime") ?? sport("eventDate")} hint={t.create.startHint}>
          <input className="input" type="datetime-local" value={game.start} onChange={(event) => set({ start: event.target.value })} />
        </Field>
        <Field label={t.create.livestream} problem={sport("livestreamUrl")}>
          <input className="input" type="url" value={game.livestream} placeholder="https://" onChange={(event) => set({ livestream: event.target.value })} />
        </Field>
      </div>
      <StandardMarkets game={game} set={set} problemOf={sport} />
      <OwnMarkets game={game} set={set} problemOf={sport} pictures={pictures} onPicture={onPicture} />
      <details>
        <summary>{t.create.feed}</summary>
        <div className="pair" style={{ marginTop: "var(--s3)" }}>
          <Field label={t.create.provider} problem={sport("sourceProvider")} hint={t.create.providerHint}>
            <input className="input" value={game.provider} maxLength={64} placeholder={t.create.providerExample} onChange={(event) => set({ provider: event.target.value })} />
          </Field>
          <Field label={t.create.providerId} problem={sport("sourceEventId")}>
            <input className="input" value={game.providerId} maxLength={128} onChange={(event) => set({ providerId: event.target.value })} />
          </Field>
        </div>
      </details>
    </fieldset>
  );
}

interface PartProps {
  game: GameDraft;
  set: (part: Partial<GameDraft>) => void;
  problemOf: (field: string) => string | null;
}

function StandardMarkets({ game, set, problemOf }: PartProps) {
  return (
    <fieldset className="stack">
      <legend>{t.create.standard}</legend>
      <p className="muted small">{t.create.standardHint}</p>
      <label className="row"><input type="checkbox" checked={game.draw} onChange={(event) => set({ draw: event.target.checked })} />{t.create.draw}</label>
      <label className="row"><input type="checkbox" checked={game.bothScore} onChange={(event) => set({ bothScore: event.target.checked })} />{t.create.bothScore}</label>
      <div className="pair">
        <Field label={t.create.spreads} problem={problemOf("template/spreadLines")} hint={t.create.spreadsHint}>
          <input className="input" value={game.spreads} placeholder="-1.5, 1.5" onChange={(event) => set({ spreads: event.target.value })} />
        </Field>
        <Field label={t.create.totals} problem={problemOf("template/totalLines")} hint={t.create.totalsHint}>
          <input className="input" value={game.totals} placeholder="2.5" onChange={(event) => set({ totals: event.target.value })} />
        </Field>
      </div>
    </fieldset>
  );
}

function OwnMarkets({ game, set, problemOf, pictures, onPicture }: PartProps & { pictures: Pictures; onPicture: ChangePicture }) {
  const change = (index: number, part: Partial<GameMarketDraft>): void =>
    set({ markets: game.markets.map((market, each) => (each === index ? { ...market, ...part } : market)) });
  const remove = (market: GameMarketDraft): void => {
    onPicture(optionImage(market.id), null);
    set({ markets: game.markets.filter((each) => each.id !== market.id) });
  };
  return (
    <fieldset className="stack">
      <legend>{t.create.ownMarkets}</legend>
      {game.markets.map((market, index) => (
        <div key={market.id} className="card stack">
          <div className="pair">
            <Field label={t.create.ownTitle} problem={problemOf(`markets/${index}/title`) ?? problemOf(`markets/${index}/slug`)}>
              <input className="input" value={market.title} maxLength={60} onChange={(event) => change(index, { title: event.target.value })} />
            </Field>
            <Field label={t.create.optionQuestion} problem={problemOf(`markets/${index}/question`)}>
              <input className="input" value={market.question} maxLength={500} placeholder={t.create.optionQuestionHint} onChange={(event) => change(index, { question: event.target.value })} />
            </Field>
            <Field label={t.create.firstOutcome} problem={problemOf(`markets/${index}/outcomes`)}>
              <input className="input" value={market.first} maxLength={60} onChange={(event) => change(index, { first: event.target.value })} />
            </Field>
            <Field label={t.create.secondOutcome}>
              <input className="input" value={market.second} maxLength={60} onChange={(event) => change(index, { second: event.target.value })} />
            </Field>
          </div>
          <ImageCrop side={LOGO_SIDE} title={market.title} label={t.create.optionPicture} picture={pictures[optionImage(market.id)]} onPicture={(picture) => onPicture(optionImage(market.id), picture)} />
          <div><button type="button" className="button" onClick={() => remove(market)}>{t.create.removeOption}</button></div>
        </div>
      ))}
      <div><button type="button" className="button" disabled={game.markets.length >= GAME_MARKETS_MAX} onClick={() => set({ markets: [...game.markets, newGameMarket(game.markets)] })}>{t.create.addMarket}</button></div>
    </fieldset>
  );
}
