// SPDX-License-Identifier: Apache-2.0
// Services and versions by what they cost.
import { bytes, count, duration, percent, plural } from "../format";
import { SortableTable } from "../sortable";
import { CostRow, metricIn, ServiceRow, useAnswer } from "./ask";
import { Nothing, ViewProps, Waiting } from "./parts";
import { choice, priceFault } from "./state";

const when = (s: number) =>
  s ? new Date(s * 1000).toISOString().slice(0, 16).replace("T", " ") : "";

export function ServicesView({ state, change, known }: ViewProps) {
  const price = priceFault(state.price) ? "" : state.price;
  // The service would turn the answer into one about its methods.
  const { data, error, nothing } = useAnswer<{ services: CostRow[] }>("top", {
    ...choice(state),
    service: undefined,
    metric: state.metric,
    price,
  });
  const m = metricIn(state.metric, data);
  // What the choice has, unlike what is known of the service as a whole.
  const chosen = useAnswer<{ services: ServiceRow[] }>("services", choice(state)).data?.services;
  if (!data) return <Waiting error={error} />;
  const rows = data.services.filter((s) => !state.service || s.service === state.service);
  const sum = (s: CostRow) => Number(s[`${m.name}_${m.sum}`] ?? 0);
  const timeless = rows.reduce((a, s) => a + Number(s[`${m.name}_samples_without_time`] ?? 0), 0);
  const all = rows.reduce((a, s) => a + sum(s), 0);
  const weigh = m.sum === "bytes" ? bytes : duration;
  // A sum of 0 means that none of the samples states its time.
  const orUnknown = (format: (v: number) => string) => (v: number) => (v ? format(v) : "unknown");
  const of = (s: CostRow) =>
    (chosen ?? known).find((k) => k.service === s.service && k.version === s.version);
  const columns = [
    { title: "Service", name: true },
    { title: "Version" },
    { title: m.title.replace(/ samples$/, ""), numeric: true, format: orUnknown(weigh) },
    { title: "Share", numeric: true, format: orUnknown((v) => percent(v, 1)) },
    ...(price
      ? [
          {
            title: "Cost",
            numeric: true,
            format: orUnknown((v) => (v < 0.005 ? "<0.01" : v.toFixed(2))),
          },
        ]
      : []),
    { title: "Samples", numeric: true, format: count, minor: true },
    { title: "Hosts", numeric: true, format: count },
    { title: "Instances", numeric: true, format: count, minor: true },
    { title: "First sent (UTC)", minor: true },
    { title: "Last sent (UTC)", minor: true },
  ];
  const cells = (s: CostRow) => [
    s.service,
    s.version,
    sum(s),
    all ? sum(s) / all : 0,
    ...(price ? [s.cost ?? 0] : []),
    Number(s[`${m.name}_samples`] ?? 0),
    of(s)?.hosts ?? 0,
    of(s)?.instances ?? 0,
    when(of(s)?.from ?? 0),
    when(of(s)?.to ?? 0),
  ];
  return (
    <main>
      <section class="columns" aria-label="Services by cost">
        {timeless > 0 && (
          <p class="note">
            {timeless === 1
              ? "1 sample does not state the time that it represents and is"
              : `${plural(timeless, "sample")} do not state the time that they represent and are`}{" "}
            missing from the times and costs.
          </p>
        )}
        {rows.length ? (
          <SortableTable
            cards
            caption="Services by cost. Enter shows the profile of one."
            columns={columns}
            rows={rows.map((s, key) => ({ key, cells: cells(s) }))}
            by={2}
            selected={new Set()}
            onSelect={(s) => {
              const row = rows[[...s][0]];
              if (row) change({ view: "profile", service: row.service, version: row.version });
            }}
          />
        ) : (
          <Nothing why={nothing} otherwise="Nothing of this kind was sent in that time." />
        )}
      </section>
    </main>
  );
}
