// SPDX-License-Identifier: Apache-2.0
// Questions about a heap dump. The server answers them with the output of `jvmscope heap VERB
// --json`; a page of one file contains a set of answers.
import { useEffect, useState } from "preact/hooks";

declare module "./data" {
  interface PageJson {
    heap?: HeapJson;
  }
}

export interface HeapJson {
  answers?: Record<string, unknown>; // by key(); absent when the page is served
}

export interface HeapObject {
  object: string; // "0x..."
  class: string;
  shallow: number;
  retained: number;
  percent?: number;
  children?: number;
  value: string | null;
  dominator?: string | null;
}

export interface Summary {
  objects: number;
  bytes: number;
  reachable: number;
  reachableBytes: number;
  classes: number;
  roots: { root: string; count: number }[];
  notes?: string[];
  [fact: string]: unknown;
}

export interface ClassRow {
  class: string;
  objects: number;
  shallow: number;
  retained: number | null;
  ofName: number; // classes that the row is the sum of
}

export interface Inspected {
  object?: string;
  class?: string;
  what: string;
  shallow: number;
  retained: number;
  root?: string;
  dominator?: string; // described
  dominatorObject?: string; // its id; none for the GC roots together
  fields?: {
    field: string;
    type: string;
    object: string | null;
    retained: number | null;
    value: string | null;
  }[];
  incomingCount?: number;
  incoming?: {
    object: string;
    via: string;
    retained: number;
    class: string;
    value: string | null;
  }[];
  notes?: string[];
}

export interface PathStep {
  via: string;
  object: string;
  shallow: number;
  retained: number;
  class: string;
  value: string | null;
}

export interface Suspect {
  object: string;
  class: string;
  instances: number;
  retained: number;
  percent: number;
  accumulator: string | null;
  accumulatorClass: string | null;
  accumulates: string | null;
  count: number;
  path: string;
  text: string;
}

export interface QueryAnswer {
  columns: string[];
  rows: (string | number | null)[][];
  seconds?: number;
  truncated?: boolean;
}

export type Ask = <T>(
  verb: string,
  parameters?: Record<string, string>,
  signal?: AbortSignal,
) => Promise<T>;

export class NotInPage extends Error {}

/** The key of an answer in a page of one file; src/answers/heap/ask.c computes the same one. */
export const key = (verb: string, parameters: Record<string, string>) =>
  [
    verb,
    ...Object.keys(parameters)
      .sort()
      .map((k) => `${k}=${parameters[k]}`),
  ].join(" ");

export function asker(json: HeapJson): Ask {
  const known = new Map<string, Promise<unknown>>();
  return <T>(verb: string, parameters: Record<string, string> = {}, signal?: AbortSignal) => {
    const k = key(verb, parameters);
    if (json.answers) {
      const a = json.answers[k];
      return a === undefined ? Promise.reject(new NotInPage(k)) : Promise.resolve(a as T);
    }
    const old = known.get(k);
    if (old) return old as Promise<T>;
    const asked = fetch(`heap/${verb}?${new URLSearchParams(parameters)}`, { signal }).then(
      async (r) => {
        if (!r.ok) throw new Error((await r.text()).trim());
        const answer = (await r.json()) as T & { refused?: string };
        if (answer.refused) throw new Error(answer.refused.trim());
        return answer;
      },
    );
    // Recent answers are kept, failures are not.
    known.set(k, asked);
    if (known.size > 200) known.delete(known.keys().next().value!);
    asked.catch(() => known.delete(k));
    return asked;
  };
}

/** The answer to a question, or null until it arrives. */
export function useAnswer<T>(
  ask: Ask,
  verb: string,
  parameters: Record<string, string>,
  when = true,
): { answer: T | null; error: Error | null } {
  const [state, setState] = useState<{ k: string; answer: T | null; error: Error | null }>({
    k: "",
    answer: null,
    error: null,
  });
  const k = when ? key(verb, parameters) : "";
  useEffect(() => {
    if (!when) return;
    let gone = false;
    ask<T>(verb, parameters)
      .then((answer) => gone || setState({ k, answer, error: null }))
      .catch((error) => gone || setState({ k, answer: null, error }));
    return () => void (gone = true);
  }, [k, ask]);
  return state.k === k ? state : { answer: null, error: null };
}

/** Removes the package from "com.example.Outer$Inner". */
export const simple = (name: string) => name.replace(/^.*\.(?=[^.]+$)/, "");
export const titleOf = (o: { class: string; value: string | null }) =>
  o.value ? `${simple(o.class)} ${o.value}` : simple(o.class);
