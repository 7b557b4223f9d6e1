// A market as it is drafted, and its payload: the text that is hashed, signed and sent.

import { readStored, writeStored } from "../lib/stored";
import type { Address } from "../wallet/provider";
import { type GameDraft, gameTags, newGame, sportsOf } from "./create_game";

export type Mode = "binary" | "multi_multiple" | "multi_unique";

/** A mode of the payload, or a game, whose markets come from its teams and lines. */
export type Kind = Mode | "sports";

export interface DraftOption {
  /** The key of the option, of its picture and of its market; it stays when other options go. */
  id: string;
  title: string;
  question: string;
}

export interface MarketDraft {
  mode: Kind;
  title: string;
  slug: string;
  yes: string;
  no: string;
  options: DraftOption[];
  game: GameDraft;
  end: string;
  category: string;
  tags: string;
  source: string;
  rules: string;
  resolution: "dro_moov2" | "alt_moov2";
}

export const MAIN_CATEGORIES = ["politics", "sports", "crypto", "finance", "culture", "weather", "economics", "tech", "world"] as const;
const STORED = "market-draft";
const SLUG_MAX = 100;

/** Return an option without a title, whose key none of the others has. */
export function newOption(others: DraftOption[]): DraftOption {
  const numbers = others.map((option) => Number(option.id.split("-").at(-1)));
  return { id: `option-${Math.max(0, ...numbers) + 1}`, title: "", question: "" };
}

/** Return a draft whose end is a month from now, in the browser's time zone. */
function newDraft(): MarketDraft {
  const end = new Date(Date.now() + 30 * 86_400_000);
  end.setHours(12, 0, 0, 0);
  const local = new Date(end.getTime() - end.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  return {
    mode: "binary", title: "", slug: "", yes: "Yes", no: "No", options: [newOption([]), newOption([newOption([])])],
    game: newGame(), end: local, category: "world", tags: "", source: "", rules: "", resolution: "dro_moov2",
  };
}

export function readDraft(): MarketDraft {
  const text = readStored("local", STORED);
  if (text === null) return newDraft();
  const [empty, kept] = [newDraft(), JSON.parse(text) as Partial<MarketDraft>];
  const options = (kept.options ?? empty.options).map((option, index) => ({ ...option, id: option.id ?? `option-${index + 1}` }));
  return { ...empty, ...kept, options, game: { ...empty.game, ...kept.game } };
}

export function writeDraft(draft: MarketDraft | null): void {
  writeStored("local", STORED, draft === null ? null : JSON.stringify(draft));
}

export function slugOf(title: string): string {
  const plain = title.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
  return plain.replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, SLUG_MAX);
}

export function tagsOf(draft: MarketDraft): string[] {
  const typed = draft.tags.split(",").map((tag) => tag.trim()).filter((tag) => tag !== "");
  return draft.mode === "sports" ? [...gameTags(draft.game), ...typed] : [draft.category, ...typed];
}

/** Return the end as a time in UTC, empty if the field is no time. */
export function endOf(draft: MarketDraft): string {
  const time = new Date(draft.end);
  return Number.isNaN(time.getTime()) ? "" : time.toISOString();
}

export function payloadOf(draft: MarketDraft, creator: Address, chainId: number): string {
  const title = draft.title.trim();
  const isGame = draft.mode === "sports";
  const shared = {
    chainId, creator, title, slug: draft.slug || slugOf(title), endDateIso: endOf(draft), mainCategorySlug: isGame ? "sports" : draft.category,
    categories: tagsOf(draft), marketMode: isGame ? "multi_multiple" : draft.mode, resolutionType: draft.resolution, resolutionRules: draft.rules.trim(),
    ...(draft.source.trim() === "" ? {} : { resolutionSource: draft.source.trim() }),
  };
  if (draft.mode === "binary") {
    return JSON.stringify({ ...shared, binaryQuestion: title, binaryOutcomeYes: draft.yes.trim(), binaryOutcomeNo: draft.no.trim() });
  }
  if (isGame) return JSON.stringify({ ...shared, sports: sportsOf(draft.game, slugOf) });
  const options = draft.options.map((option) => ({
    id: option.id, title: option.title.trim(), shortName: option.title.trim(), slug: slugOf(option.title), question: option.question.trim(),
  }));
  return JSON.stringify({ ...shared, options });
}
