// SPDX-License-Identifier: Apache-2.0
// What the views share: what they are given, and what stands in place of an answer.
import type { ServiceRow } from "./ask";
import type { State } from "./state";

export interface ViewProps {
  state: State;
  change: (part: Partial<State>) => void;
  known: ServiceRow[]; // all services and versions, of any time
}

/** What stands in place of an answer that holds nothing: why it does. */
export function Nothing({ why, otherwise }: { why: string; otherwise: string }) {
  return <p class="empty">{why ? `${why[0].toUpperCase()}${why.slice(1)}.` : otherwise}</p>;
}

/** What stands where an answer is not there (yet). */
export function Waiting({ error }: { error: string }) {
  return error ? (
    <p class="note lost">{error}</p>
  ) : (
    <p class="empty" role="status">
      Querying the store …
    </p>
  );
}
