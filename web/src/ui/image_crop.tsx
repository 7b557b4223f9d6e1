// A square picture: a file that the user moves and scales, or one that is drawn from a title.

import { type PointerEvent, useEffect, useRef, useState } from "react";

import type { Crop, Picture } from "../lib/pictures";
import { t } from "../strings";
import { Field } from "./parts";

const FILE_BYTES_MAX = 20 * 1024 * 1024;
const ZOOM_MAX = 4;
const CENTERED: Crop = { x: 0.5, y: 0.5, zoom: 1 };

/** Return a number from 0 to 359 that a text always gives. */
function hueOf(text: string): number {
  return [...text].reduce((hue, character) => (hue * 31 + (character.codePointAt(0) ?? 0)) % 360, 210);
}

function drawTitle(context: CanvasRenderingContext2D, title: string): void {
  const side = context.canvas.width;
  const hue = hueOf(title);
  const gradient = context.createLinearGradient(0, 0, side, side);
  gradient.addColorStop(0, `hsl(${hue} 62% 48%)`);
  gradient.addColorStop(1, `hsl(${(hue + 55) % 360} 68% 30%)`);
  context.fillStyle = gradient;
  context.fillRect(0, 0, side, side);
  context.fillStyle = "rgb(255 255 255 / 92%)";
  context.font = `700 ${side * 0.5}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText((title.trim()[0] ?? "?").toUpperCase(), side / 2, side * 0.54);
}

function drawCrop(context: CanvasRenderingContext2D, image: ImageBitmap, crop: Crop): void {
  const shown = context.canvas.width;
  const side = Math.min(image.width, image.height) / crop.zoom;
  const left = (image.width - side) * crop.x;
  const top = (image.height - side) * crop.y;
  context.clearRect(0, 0, shown, shown);
  context.drawImage(image, left, top, side, side, 0, 0, shown, shown);
}

/** Return a picture as the file that is sent; without one, what its title draws. */
export async function fileOf(picture: Picture | undefined, title: string, side: number): Promise<Blob> {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = side;
  const context = canvas.getContext("2d");
  if (context === null) throw new Error(t.create.badImage);
  if (picture === undefined) drawTitle(context, title);
  else drawCrop(context, await createImageBitmap(picture.file), picture.crop);
  const file = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
  if (file === null) throw new Error(t.create.badImage);
  return file;
}

const within = (value: number): number => Math.min(1, Math.max(0, value));

export function ImageCrop({ title, label, hint, picture, onPicture, side = 200 }: {
  title: string; label: string; hint?: string; picture: Picture | undefined; onPicture: (picture: Picture | null) => void; side?: number;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [image, setImage] = useState<{ of: Blob; bitmap: ImageBitmap } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const crop = picture?.crop ?? CENTERED;
  useEffect(() => {
    const file = picture?.file;
    if (file === undefined || image?.of === file) return;
    createImageBitmap(file).then((bitmap) => setImage({ of: file, bitmap }), () => onPicture(null));
  }, [picture?.file, image, onPicture]);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context == null) return;
    if (picture !== undefined && image?.of === picture.file) drawCrop(context, image.bitmap, picture.crop);
    else drawTitle(context, title);
  }, [image, picture, title]);
  const choose = async (file: File | undefined): Promise<void> => {
    setProblem(null);
    if (file === undefined) return;
    try {
      if (file.size > FILE_BYTES_MAX) throw new Error("too large");
      (await createImageBitmap(file)).close();
      onPicture({ file, crop: CENTERED });
    } catch {
      setProblem(t.create.badImage);
    }
  };
  const change = (part: Partial<Crop>): void => {
    if (picture !== undefined) onPicture({ ...picture, crop: { ...crop, ...part } });
  };
  const shift = (x: number, y: number): void => change({ x: within(crop.x + x), y: within(crop.y + y) });
  const move = (event: PointerEvent): void => {
    if (event.buttons !== 0) shift(-event.movementX / side, -event.movementY / side);
  };
  const nudge = (key: string): void => {
    const steps: Record<string, [number, number]> = { ArrowLeft: [-0.05, 0], ArrowRight: [0.05, 0], ArrowUp: [0, -0.05], ArrowDown: [0, 0.05] };
    const step = steps[key];
    if (step !== undefined) shift(...step);
  };
  return (
    <div className="crop">
      <canvas
        ref={canvas} width={side * 2} height={side * 2} style={{ width: side, height: side }} role="img" tabIndex={picture === undefined ? -1 : 0}
        aria-label={t.create.pictureLabel(label)} onPointerMove={move} onKeyDown={(event) => nudge(event.key)}
      />
      <div className="stack tight grow">
        <Field label={label} problem={problem} {...(hint === undefined ? {} : { hint })}>
          <input className="input" type="file" accept="image/png,image/jpeg,image/webp" onChange={(event) => void choose(event.target.files?.[0])} />
        </Field>
        {picture === undefined ? null : (
          <div className="row">
            <div className="grow"><Field label={t.create.zoom}>
              <input type="range" min={1} max={ZOOM_MAX} step={0.05} value={crop.zoom} onChange={(event) => change({ zoom: Number(event.target.value) })} />
            </Field></div>
            <button type="button" className="button slim" onClick={() => onPicture(null)}>{t.create.withoutPicture}</button>
          </div>
        )}
      </div>
    </div>
  );
}
