// SPDX-License-Identifier: Apache-2.0
// Requests pictures of threads: the visible part of time with a margin on either side. Only one
// request is in flight; of those made meanwhile, only the last is sent.
import { Picture } from "./picture";
import type { Source } from "./timeline";

interface Wanted {
  from: number;
  to: number;
  pixel: number;
  threads: number[];
}

const MARGIN = 1 / 8; // of the visible time, to either side

export class Asking {
  shown = new Picture(0, 0);
  private pixel = 0;
  private asked: Wanted | null = null;
  private next: Wanted | null = null;

  constructor(
    private source: Source,
    private onPicture: () => void,
  ) {}

  /** Returns whether the picture shows these rows, in this part of time and at its resolution. */
  covers(view: [number, number], pixel: number, threads: number[]): boolean {
    const { from, to, rows } = this.shown;
    return holds(from, to, this.pixel, view, pixel) && threads.every((t) => rows.has(t));
  }

  /** Requests these rows unless that request is already in flight. */
  want(view: [number, number], pixel: number, threads: number[]) {
    const { asked } = this;
    this.next = null;
    if (
      asked &&
      holds(asked.from, asked.to, asked.pixel, view, pixel) &&
      threads.every((t) => asked.threads.includes(t))
    )
      return;
    const around = (view[1] - view[0]) * MARGIN;
    this.next = {
      from: Math.max(0, Math.floor(view[0] - around)),
      to: Math.ceil(view[1] + around),
      pixel,
      threads,
    };
    if (!asked) this.ask();
  }

  private ask() {
    const w = (this.asked = this.next!);
    this.next = null;
    const done = () => {
      this.asked = null;
      if (this.next) this.ask();
    };
    this.source.range(w.from, w.to, (w.to - w.from) / w.pixel, w.threads).then((picture) => {
      this.shown = picture;
      this.pixel = w.pixel;
      done();
      this.onPicture(); // it asks again when that is not what is in sight by now
    }, done);
  }
}

const holds = (
  from: number,
  to: number,
  pixelThere: number,
  view: [number, number],
  pixel: number,
) => from <= view[0] && to >= view[1] && Math.abs(pixelThere / pixel - 1) < 0.02;
