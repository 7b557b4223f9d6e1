// The pictures of a draft by the fields of the request that carries them, kept over a reload.

import { useCallback, useEffect, useState } from "react";

import { type Picture, readPictures, writePicture } from "../lib/pictures";
import { fileOf } from "../ui/image_crop";
import type { Images } from "../wallet/creation";
import type { MarketDraft } from "./create_draft";

export const EVENT_IMAGE = "eventImage";
const EVENT_SIDE = 512;
const PART_SIDE = 256;

export type Pictures = Record<string, Picture>;
export type ChangePicture = (field: string, picture: Picture | null) => void;

export const optionImage = (id: string): string => `optionImage:${id}`;
export const teamLogo = (side: "home" | "away"): string => `teamLogo:${side}`;

export function usePictures(): [Pictures, ChangePicture] {
  const [pictures, setPictures] = useState<Pictures>({});
  useEffect(() => void readPictures().then((kept) => setPictures((before) => ({ ...kept, ...before }))), []);
  const change = useCallback<ChangePicture>((field, picture) => {
    setPictures((before) => {
      const { [field]: _, ...others } = before;
      return picture === null ? others : { ...others, [field]: picture };
    });
    void writePicture(field, picture);
  }, []);
  return [pictures, change];
}

/** Return the files of a draft: its own picture and its teams' logos always, of options those that were chosen. */
export async function filesOf(draft: MarketDraft, pictures: Pictures): Promise<Images> {
  const files: Images = { [EVENT_IMAGE]: await fileOf(pictures[EVENT_IMAGE], draft.title, EVENT_SIDE) };
  if (draft.mode === "sports") {
    for (const side of ["home", "away"] as const) files[teamLogo(side)] = await fileOf(pictures[teamLogo(side)], draft.game[side].name, PART_SIDE);
  }
  const parts = draft.mode === "sports" ? draft.game.markets : draft.mode === "binary" ? [] : draft.options;
  for (const part of parts) {
    const picture = pictures[optionImage(part.id)];
    if (picture !== undefined) files[optionImage(part.id)] = await fileOf(picture, part.title, PART_SIDE);
  }
  return files;
}
