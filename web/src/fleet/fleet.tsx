// SPDX-License-Identifier: Apache-2.0
// The frame of the page: which view, and what of the fleet it is about.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Mark } from "../mark";
import { isDark, setTheme } from "../theme";
import { metrics, ServiceRow, useAnswer } from "./ask";
import { DifferenceView } from "./difference";
import { FindingsView } from "./findings";
import { Help } from "./help";
import { MethodView } from "./method";
import { ViewProps } from "./parts";
import { ProfileView } from "./profile";
import { RequestsView } from "./requests";
import { ServicesView } from "./services";
import { decode, encode, labelFault, priceFault, State, View } from "./state";
import { VmView } from "./vm";

const titles: Record<View, string> = {
  services: "Services",
  profile: "Profile",
  difference: "Difference",
  requests: "Requests",
  vm: "VMs",
  findings: "Findings",
  method: "Who calls",
};
const ranges: [string, string][] = [
  ["1h", "last hour"],
  ["6h", "last 6 hours"],
  ["24h", "last day"],
  ["7d", "last week"],
  ["30d", "last 30 days"],
  ["", "everything"],
];

export function Fleet() {
  const [state, setState] = useState(() => decode(location.hash));
  const change = (part: Partial<State>) => setState((s) => ({ ...s, ...part }));
  useEffect(() => {
    const follow = () => setState(decode(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    const hash = encode(state);
    const old = decode(location.hash);
    if (hash === encode(old)) return;
    // "Back" leads to another view or service, and not through the letters of a search.
    const isStep = old.view !== state.view || old.service !== state.service;
    history[isStep ? "pushState" : "replaceState"](null, "", `#${hash}`);
  }, [state]);
  const [help, setHelp] = useState(false);
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      const isTyping =
        e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement;
      if (isTyping || e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === "?") setHelp(true);
      else if (e.key === "d") setTheme(isDark() ? "light" : "dark");
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const services = useAnswer<{ services: ServiceRow[] }>("services", {});
  const known = services.data?.services ?? [];
  const view = { state, change, known };
  return (
    <>
      <header>
        <div class="brand">
          <Mark />
          <h1>Fleet</h1>
        </div>
        <nav class="tabs" aria-label="Views">
          {(Object.keys(titles) as View[]).map((v) => (
            <button
              key={v}
              aria-current={state.view === v ? "page" : undefined}
              onClick={() => change({ view: v })}
            >
              {titles[v]}
            </button>
          ))}
        </nav>
        <div class="grow" />
        <button
          class="icon"
          aria-label="Light or dark"
          title="Light or dark (d)"
          onClick={() => setTheme(isDark() ? "light" : "dark")}
        >
          ◐
        </button>
        <button class="icon" onClick={() => setHelp(true)} aria-label="Help" title="Help (?)">
          ?
        </button>
      </header>
      <Choice {...view} />
      {services.error && <p class="note lost">{services.error}</p>}
      {services.data && !known.length && (
        <main class="nothing empty">
          <p>
            Nothing has been sent to this collector yet. To send the profiles of the VMs of a
            machine, run
          </p>
          <pre>jvmscope host --to {location.origin}</pre>
        </main>
      )}
      {state.view === "services" && <ServicesView {...view} />}
      {state.view === "profile" && <ProfileView {...view} />}
      {state.view === "difference" && <DifferenceView {...view} />}
      {state.view === "requests" && <RequestsView {...view} />}
      {state.view === "vm" && <VmView {...view} />}
      {state.view === "findings" && <FindingsView {...view} />}
      {state.view === "method" && <MethodView {...view} />}
      {help && <Help view={state.view} onClose={() => setHelp(false)} />}
    </>
  );
}

/** Which service, version, machines and time. */
function Choice({ state, change, known }: ViewProps) {
  const names = useMemo(() => [...new Set(known.map((s) => s.service))].sort(), [known]);
  const versions = useMemo(
    () => known.filter((s) => s.service === state.service && s.version).map((s) => s.version),
    [known, state.service],
  );
  const select = (
    label: string,
    value: string,
    all: string,
    values: string[],
    set: (v: string) => void,
  ) => (
    <label class="field">
      {label}
      <select value={value} onChange={(e) => set(e.currentTarget.value)}>
        <option value="">{all}</option>
        {(value && !values.includes(value) ? [value, ...values] : values).map((v) => (
          <option key={v}>{v}</option>
        ))}
      </select>
    </label>
  );
  const text = (
    label: string,
    value: string,
    hint: string,
    set: (v: string) => void,
    fault = "",
  ) => (
    <label class="field">
      {label}
      <input
        type="text"
        size={12}
        maxLength={400}
        value={value}
        placeholder={hint}
        aria-invalid={!!fault}
        onChange={(e) => set(e.currentTarget.value.trim())}
      />
      {fault && <span role="alert">{fault}</span>}
    </label>
  );
  return (
    <div class="tools" role="toolbar" aria-label="What is chosen">
      {select("Service", state.service, "all", names, (service) =>
        change({ service, version: "", base: "", request: "" }),
      )}
      {state.service &&
        select("Version", state.version, "all", versions, (version) => change({ version }))}
      {text("Host", state.host, "web*", (host) => change({ host }))}
      {text(
        "Label",
        state.label,
        "region=eu",
        (label) => change({ label }),
        labelFault(state.label),
      )}
      {state.request && (
        <button class="toggle on" title="Show all requests" onClick={() => change({ request: "" })}>
          {state.request} ✕
        </button>
      )}
      <label class="field">
        Time
        <select value={state.range} onChange={(e) => change({ range: e.currentTarget.value })}>
          {ranges.map(([v, title]) => (
            <option key={v} value={v}>
              {title}
            </option>
          ))}
        </select>
      </label>
      {state.view !== "requests" && state.view !== "vm" && (
        <label class="field">
          Counted
          <select value={state.metric} onChange={(e) => change({ metric: e.currentTarget.value })}>
            <option value="">CPU samples, or what was sent</option>
            {metrics.map((m) => (
              <option key={m.name} value={m.name}>
                {m.title}
              </option>
            ))}
          </select>
        </label>
      )}
      {(state.view === "services" || state.view === "method") &&
        text(
          "Price of a CPU hour",
          state.price,
          "0.04",
          (price) => change({ price }),
          priceFault(state.price),
        )}
    </div>
  );
}
