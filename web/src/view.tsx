// SPDX-License-Identifier: Apache-2.0
// What a view of the page states about itself; views.ts lists the views.
import type { PageJson } from "./data";
import { duration, plural } from "./format";
import type { Kept, State } from "./link";
import type { Source } from "./timeline";

export interface Shown {
  page: PageJson;
  name: string; // of the file, without its extension: for the names of what is saved
  source: Source | null;
  kept: Kept;
  go: (to: Partial<State>) => void; // changes what is shown
}

export interface View {
  name: string; // in the address
  title: string; // of its tab
  has: (page: PageJson) => boolean;
  /**
   * What the view would show, and how to record it; shown when a recording lacks it. Views that
   * share a title are listed once.
   */
  missing: { title: string; is: string; by: string };
  losses: RegExp; // the captures whose losses make the view incomplete
  facts?: (page: PageJson) => preact.ComponentChildren; // next to the title
  followsRequests?: boolean; // it shows the choice of requests, or is limited to it
  show: (p: Shown) => preact.ComponentChildren;
  help: preact.ComponentChildren;
  keys: [string, string][];
}

export const noTimeline = {
  title: "Threads and locks",
  is: "what each thread did, who waited for whom, the critical path",
  by: "jvmscope run --threads -o app.jfr -- java ...",
};

export function timelineFacts({ timeline }: PageJson) {
  return (
    timeline && (
      <>
        <span>
          <b>{plural(timeline.threads.length, "thread")}</b>
        </span>
        <span>in {duration(timeline.end_ns)}</span>
        {!timeline.exact && (
          <span class="warn" title="Record with --threads to see every cause">
            some causes are not recorded
          </span>
        )}
      </>
    )
  );
}
