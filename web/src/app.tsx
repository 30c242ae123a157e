// SPDX-License-Identifier: Apache-2.0
// The page as a whole: its state and address, its keys, and the view that is shown.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  canFollow,
  choiceOf,
  choiceText,
  chosenSets,
  limitTo,
  noChoice,
  unknownRequest,
} from "./choice";
import { decodeMetric, isEmpty, Metric, PageJson } from "./data";
import { Help } from "./help";
import { decode, encode, State } from "./link";
import { Missing } from "./missing";
import { isDark, setTheme, useDark } from "./theme";
import { sourceOf } from "./timeline";
import { views } from "./views";
import { Header } from "./header";
import { Profile } from "./profileview";

/**
 * Hands a key to the main part of the view, [data-keys], when nothing that has keys of its own has
 * the focus. Returns whether it is one of its keys.
 */
function isForView(e: KeyboardEvent): boolean {
  const at = e.target as Element;
  const isButton = !!at.closest?.("button, summary");
  const isFree = at === document.body || (isButton && e.key !== "Enter" && e.key !== " ");
  if (!isFree || document.querySelector("dialog[open]")) return false;
  const { key, shiftKey } = e;
  const own = document.querySelector("[data-keys]");
  return (
    !!own && !own.dispatchEvent(new KeyboardEvent(e.type, { key, shiftKey, cancelable: true }))
  );
}

export function App({ page }: { page: PageJson }) {
  const [state, setState] = useState<State>(() => decode(location.hash));
  const [help, setHelp] = useState(false);
  const dark = useDark();
  const searchBox = useRef<HTMLInputElement>(null);
  const change = (part: Partial<State>) => setState((s) => ({ ...s, ...part }));

  const known = useRef(location.hash); // of the address, as this page read or wrote it last
  const newest = useRef(state); // shown, or soon: effects of the one before may still be under way
  newest.current = state;
  useEffect(() => {
    const f = () => {
      known.current = location.hash;
      setState((newest.current = decode(location.hash)));
    };
    addEventListener("hashchange", f);
    return () => removeEventListener("hashchange", f);
  }, []);
  useEffect(() => {
    // Not at every step of a zoom, because browsers allow only a few changes of the address per
    // second.
    const wait = setTimeout(() => {
      if (location.hash !== known.current || newest.current !== state) return; // a link was followed just now
      const hash = encode(state);
      const old = decode(location.hash);
      // "Back" leads to another view or metric, and not through the letters of a search.
      const isStep =
        old.view !== state.view || (old.metric || page.metric) !== (state.metric || page.metric);
      if (hash !== encode(old))
        history[isStep ? "pushState" : "replaceState"](null, "", `#${hash}`);
      known.current = location.hash;
    }, 120);
    return () => clearTimeout(wait);
  }, [state]);

  const cache = useRef(new Map<string, Metric>());
  const json =
    page.metrics.find((m) => m.name === (state.metric || page.metric)) ?? page.metrics[0];

  useLayoutEffect(() => {
    // a key pressed at once after another one finds the state that the first one made
    const onKey = (e: KeyboardEvent) => {
      const typing =
        e.target instanceof HTMLInputElement || e.target instanceof HTMLTextAreaElement;
      if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
      if (isForView(e)) {
        e.preventDefault();
        return;
      }
      if (e.key === "Escape") {
        if (typing) (e.target as HTMLElement).blur();
        if (state.search) change({ search: "" });
        else if (state.view === "method") change({ view: "profile" });
        else if (state.selected) change({ selected: "" });
        return;
      }
      if (typing) return;
      if (e.key === "/")
        document.querySelector<HTMLInputElement>(".tools input[type=search]")?.focus();
      else if (e.key === "?") setHelp(true);
      else if (e.key === "i") change({ inverted: !state.inverted, zoom: "" });
      else if (e.key === "f") change({ upwards: !state.upwards });
      else if (e.key === "d") setTheme(isDark() ? "light" : "dark");
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [state]);

  // A view brings the tabs along, so the one that was clicked is another element afterwards.
  const hadTab = useRef(false);
  hadTab.current = !!document.activeElement?.closest("nav.tabs");
  useLayoutEffect(() => {
    if (hadTab.current && !document.activeElement?.closest("nav.tabs"))
      document.querySelector<HTMLElement>("nav.tabs [aria-current]")?.focus();
  });

  const source = useMemo(() => (page.timeline ? sourceOf(page.timeline) : null), [page]);
  const row = views.find((v) => v.name === state.view);
  // The address may name a view that the recording lacks: then the page says so, and what would
  // record it. Without a name the first view is shown.
  const asked = row ? !row.has(page) : state.view === "method" && !json;
  const shown = asked ? undefined : (row ?? (json ? undefined : views.find((v) => v.has(page))));
  const view = shown?.name ?? (asked || state.view === "method" ? state.view : "profile");
  const inProfile = view === "profile" || view === "method";
  const [filled, setFilled] = useState<string | null>(null); // or why not
  const isWaiting = inProfile && json && isEmpty(json);
  useEffect(() => {
    if (isWaiting)
      page.fill!().then(
        () => setFilled(""),
        (e: Error) => setFilled(e.message),
      );
  }, [isWaiting]);
  const metric = useMemo(() => {
    if (!json || !inProfile || isWaiting) return null;
    let m = cache.current.get(json.name);
    if (!m) cache.current.set(json.name, (m = decodeMetric(json)));
    return m;
  }, [json, inProfile, isWaiting]);
  const choice = useMemo(
    () => choiceOf(page.requests, state.more),
    [page, state.more.rn, state.more.rb],
  );
  const unknownName = unknownRequest(page.requests, state.more);
  const limited = useMemo(() => {
    if (!metric || !choice || !canFollow(page, json)) return null;
    const chosen = chosenSets(page.request_sets!, choice);
    return {
      chosen: limitTo(metric, json, chosen, false),
      others: limitTo(metric, json, chosen, true),
    };
  }, [metric, choice]);
  const dialog = help && (
    <Help
      page={page}
      isDark={dark}
      view={view}
      metric={json?.name ?? ""}
      onClose={() => setHelp(false)}
    />
  );
  const kept = {
    kept: state.more,
    keep: (part: Record<string, string>) =>
      setState((s) => ({ ...s, more: { ...s.more, ...part } })),
  };
  const name = page.file.replace(/\.[^.]*$/, "");
  const facts = (children: preact.ComponentChildren) => (
    <Header
      page={page}
      metric={null}
      state={{ ...state, view }}
      change={change}
      dark={dark}
      onHelp={() => setHelp(true)}
    >
      {children}
    </Header>
  );
  if (shown) {
    return (
      <>
        {facts(shown.facts?.(page))}
        {page.requests && choice && !shown.followsRequests && (
          <p class="note choice">
            <span>
              The chosen requests ({choiceText(page.requests, choice)}) do not limit this view.
            </span>
            <button onClick={() => change({ view: "requests" })}>To the requests</button>
          </p>
        )}
        {page.requests && unknownName && (
          <p class="note choice">
            <span>No request has this name: {unknownName}. All requests are shown.</span>
            <button onClick={() => kept.keep(noChoice)}>All requests</button>
          </p>
        )}
        {shown.show({ page, name, source, kept, go: change })}
        {dialog}
      </>
    );
  }
  if (isWaiting) {
    return (
      <>
        {facts(null)}
        <main class="nothing">{filled || "Reading the recording …"}</main>
        {dialog}
      </>
    );
  }
  if (!metric || asked) {
    return (
      <>
        {facts(null)}
        <main class="nothing">
          <h1>{asked ? "Not in this recording" : "Nothing to see in this recording"}</h1>
          {!asked && (
            <p>
              It contains no samples, thread activity, calls, coverage or heap dump. A recording can
              contain:
            </p>
          )}
          <Missing page={page} view={asked ? state.view : undefined} />
        </main>
        {dialog}
      </>
    );
  }
  return (
    <Profile
      page={page}
      metric={limited?.chosen ?? metric}
      others={limited?.others ?? null}
      choice={choice}
      state={state}
      change={change}
      dark={dark}
      searchBox={searchBox}
      onHelp={() => setHelp(true)}
      help={dialog}
    />
  );
}
