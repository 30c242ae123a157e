// SPDX-License-Identifier: Apache-2.0
// Asks for pictures of threads: the part of time in sight with some to either side. One question is out at a time; of those that
// come meanwhile the last one counts.
import { emptyPicture, Picture } from "./picture";
import type { Source } from "./timeline";

interface Wanted {
  from: number;
  to: number;
  pixel: number;
  threads: number[];
}

export class Asking {
  shown: Picture = emptyPicture(0, 0);
  private pixel = 0;
  private busy = false;
  private next: Wanted | null = null;

  constructor(private source: Source, private onPicture: () => void) {}

  /** Whether the picture is of these rows, in this part of time and in its resolution. */
  covers([from, to]: [number, number], pixel: number, threads: number[]): boolean {
    const p = this.shown;
    return p.from <= from && p.to >= to && Math.abs(this.pixel / pixel - 1) < 0.02 && threads.every((t) => p.rows.has(t));
  }

  want(view: [number, number], pixel: number, threads: number[]) {
    const span = view[1] - view[0];
    this.next = { from: Math.max(0, Math.floor(view[0] - span / 4)), to: Math.ceil(view[1] + span / 4), pixel, threads };
    if (!this.busy) this.ask();
  }

  private ask() {
    const w = this.next!;
    this.next = null;
    this.busy = true;
    const done = () => {
      this.busy = false;
      if (this.next) this.ask();
    };
    this.source.range(w.from, w.to, (w.to - w.from) / w.pixel, w.threads).then((picture) => {
      this.shown = picture;
      this.pixel = w.pixel;
      this.onPicture(); // it asks again when that is not what is in sight by now
      done();
    }, done);
  }
}
