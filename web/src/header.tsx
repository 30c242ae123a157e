// SPDX-License-Identifier: Apache-2.0
// What stands above every view: the title, the choice of views, their facts, losses and notes.
import { Metric, PageJson } from "./data";
import { State } from "./link";
import { Losses } from "./losses";
import { Mark } from "./mark";
import { isDark, setTheme } from "./theme";
import { views } from "./views";

interface HeaderProps {
  page: PageJson;
  metric: Metric | null;
  state: State;
  change: (part: Partial<State>) => void;
  dark: boolean;
  onHelp: () => void;
  children: preact.ComponentChildren;
}

/** The title, the choice of views and the facts of the view, with the recording's losses below. */
export function Header(p: HeaderProps) {
  return (
    <>
      <Bar {...p} />
      {p.page.warning && <p class="note">Only part of it could be read: {p.page.warning}.</p>}
      {p.page.part && (
        <p class="note">Of the samples, this page has only those of: {p.page.part}</p>
      )}
      {p.page.whole && (
        <p class="note">
          Only the samples are limited to the selected part. These cover the whole recording:{" "}
          {p.page.whole}.
        </p>
      )}
      <Losses page={p.page} view={p.state.view} metric={p.metric?.name ?? ""} />
    </>
  );
}

function Bar({ page, metric, state, change, dark, onHelp, children }: HeaderProps) {
  const current = (on: boolean) => (on ? "page" : undefined);
  const inProfile = state.view === "profile" || state.view === "method";
  return (
    <header>
      <div class="brand">
        <Mark />
        {page.site && page.site.files.length > 1 ? (
          <select
            aria-label="File"
            value={page.site.at}
            onChange={(e) => (location.href = `../${e.currentTarget.value}/`)}
          >
            {page.site.files.map((f, i) => (
              <option key={i} value={i}>
                {f.replace(/^.*\//, "")}
              </option>
            ))}
          </select>
        ) : (
          <h1 class="cut" title={page.file}>
            {page.file}
          </h1>
        )}
      </div>
      <div class="views">
        <nav class="tabs" aria-label="Views">
          {page.metrics.map((m) => (
            <button
              key={m.name}
              aria-current={current(inProfile && m.name === metric?.name)}
              onClick={() => change({ view: "profile", metric: m.name, zoom: "", window: null })}
            >
              {m.title}
            </button>
          ))}
          {views
            .filter((v) => v.has(page))
            .map((v) => (
              <button
                key={v.name}
                aria-current={current(state.view === v.name)}
                onClick={() => change({ view: v.name })}
              >
                {v.title}
              </button>
            ))}
        </nav>
        <div class="facts">{children}</div>
      </div>
      <button
        class="icon"
        onClick={() => setTheme(isDark() ? "light" : "dark")}
        aria-label="Light or dark"
        title="Light or dark (d)"
      >
        {dark ? "☀" : "☾"}
      </button>
      <button class="icon" onClick={onHelp} aria-label="Help" title="Help (?)">
        ?
      </button>
    </header>
  );
}
