// A square picture: a file that the user moves and scales, or one that is drawn from the title.

import { type PointerEvent, useEffect, useRef, useState } from "react";

import { t } from "../strings";
import { Field } from "./parts";

const SIDE = 512;
const SHOWN = 200;
const FILE_BYTES_MAX = 20 * 1024 * 1024;
const ZOOM_MAX = 4;

interface Crop {
  x: number;
  y: number;
  zoom: number;
}

const CENTERED: Crop = { x: 0.5, y: 0.5, zoom: 1 };

/** Return a number from 0 to 359 that a text always gives. */
function hueOf(text: string): number {
  return [...text].reduce((hue, character) => (hue * 31 + (character.codePointAt(0) ?? 0)) % 360, 210);
}

function drawTitle(context: CanvasRenderingContext2D, title: string): void {
  const hue = hueOf(title);
  const gradient = context.createLinearGradient(0, 0, SIDE, SIDE);
  gradient.addColorStop(0, `hsl(${hue} 62% 48%)`);
  gradient.addColorStop(1, `hsl(${(hue + 55) % 360} 68% 30%)`);
  context.fillStyle = gradient;
  context.fillRect(0, 0, SIDE, SIDE);
  context.fillStyle = "rgb(255 255 255 / 92%)";
  context.font = `700 ${SIDE * 0.5}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText((title.trim()[0] ?? "?").toUpperCase(), SIDE / 2, SIDE * 0.54);
}

function drawCrop(context: CanvasRenderingContext2D, image: ImageBitmap, crop: Crop): void {
  const side = Math.min(image.width, image.height) / crop.zoom;
  const left = (image.width - side) * crop.x;
  const top = (image.height - side) * crop.y;
  context.clearRect(0, 0, SIDE, SIDE);
  context.drawImage(image, left, top, side, side, 0, 0, SIDE, SIDE);
}

const within = (value: number): number => Math.min(1, Math.max(0, value));

export function ImageCrop({ title, onPicture }: { title: string; onPicture: (picture: Blob | null) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [image, setImage] = useState<ImageBitmap | null>(null);
  const [crop, setCrop] = useState<Crop>(CENTERED);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context == null) return;
    if (image === null) drawTitle(context, title);
    else drawCrop(context, image, crop);
    canvas.current?.toBlob(onPicture, "image/png");
  }, [image, crop, title, onPicture]);
  const choose = async (file: File | undefined): Promise<void> => {
    setProblem(null);
    if (file === undefined) return;
    try {
      if (file.size > FILE_BYTES_MAX) throw new Error("too large");
      setImage(await createImageBitmap(file));
      setCrop(CENTERED);
    } catch {
      setProblem(t.create.badImage);
    }
  };
  const move = (event: PointerEvent): void => {
    if (event.buttons === 0 || image === null) return;
    setCrop((before) => ({ ...before, x: within(before.x - event.movementX / SHOWN), y: within(before.y - event.movementY / SHOWN) }));
  };
  const nudge = (key: string): void => {
    const steps: Record<string, [number, number]> = { ArrowLeft: [-0.05, 0], ArrowRight: [0.05, 0], ArrowUp: [0, -0.05], ArrowDown: [0, 0.05] };
    const [x, y] = steps[key] ?? [0, 0];
    setCrop((before) => ({ ...before, x: within(before.x + x), y: within(before.y + y) }));
  };
  return (
    <div className="crop">
      <canvas
        ref={canvas} width={SIDE} height={SIDE} style={{ width: SHOWN, height: SHOWN }} role="img" tabIndex={0}
        aria-label={t.create.pictureLabel} onPointerMove={move} onKeyDown={(event) => nudge(event.key)}
      />
      <div className="stack grow">
        <Field label={t.create.picture} problem={problem} hint={t.create.pictureHint}>
          <input className="input" type="file" accept="image/png,image/jpeg,image/webp" onChange={(event) => void choose(event.target.files?.[0])} />
        </Field>
        {image === null ? null : (
          <Field label={t.create.zoom}>
            <input type="range" min={1} max={ZOOM_MAX} step={0.05} value={crop.zoom} onChange={(event) => setCrop((before) => ({ ...before, zoom: Number(event.target.value) }))} />
          </Field>
        )}
      </div>
    </div>
  );
}
