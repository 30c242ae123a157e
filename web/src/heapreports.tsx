// SPDX-License-Identifier: Apache-2.0
// The reports of a heap dump: the answers of the verbs that have no view of their own.
import { bytes, count, percent } from "./format";
import { Ask, useAnswer } from "./heapdata";
import { Why } from "./heapobject";
import { SortableTable } from "./sortable";

const reports = [
  ["threads", "Threads, their stacks and what they hold"],
  ["strings", "Duplicate strings"],
  ["collections", "How full the collections are"],
  ["arrays", "Arrays that are empty, sparse or oversized"],
  ["references", "What weak and other references hold"],
  ["classes", "Class loaders, and classes loaded twice"],
  ["components", "What packages and loaders retain"],
  ["unreachable", "Unreachable objects"],
] as const;

/** How the numbers under a key of an answer are shown, where that is not as they are. */
function formatOf(key: string): { format?: (v: number) => string } {
  if (/^(percent|fill|collisions)$/.test(key)) return { format: (v) => percent(v, 100) };
  return /bytes|size|wasted|shallow|retained/i.test(key) && key !== "size" ? { format: bytes } : {};
}

/** The answer of any verb: its facts, its notes and its tables. */
export function Reports({
  ask,
  verb,
  onVerb,
  onChoose,
}: {
  ask: Ask;
  verb: string;
  onVerb: (v: string) => void;
  onChoose: (o: string) => void;
}) {
  const at = reports.find(([v]) => v === verb)?.[0] ?? "threads";
  const { answer, error } = useAnswer<Record<string, unknown>>(ask, at, {});
  const parts = Object.entries(answer ?? {});
  const tables = parts.filter(
    (e): e is [string, Record<string, unknown>[]] =>
      Array.isArray(e[1]) && e[1].every((r) => r && typeof r === "object"),
  );
  const notes = (answer?.notes as string[] | undefined) ?? [];
  return (
    <div class="suspects">
      <select aria-label="Report" value={at} onChange={(e) => onVerb(e.currentTarget.value)}>
        {reports.map(([v, title]) => (
          <option key={v} value={v}>
            {title}
          </option>
        ))}
      </select>
      {error && <Why error={error} />}
      {!answer && !error && <p class="dim">…</p>}
      {notes
        .filter((n) => n.trim())
        .map((n) => (
          <p>{n}</p>
        ))}
      {parts.some(([, v]) => typeof v !== "object") && (
        <dl class="facts-list">
          {parts
            .filter(([, v]) => v !== null && typeof v !== "object")
            .map(([k, v]) => (
              <>
                <dt>{words(k)}</dt>
                <dd>
                  {typeof v === "number" && /bytes|size|wasted|shallow|retained/i.test(k)
                    ? bytes(v)
                    : typeof v === "number"
                      ? count(v)
                      : String(v)}
                </dd>
              </>
            ))}
        </dl>
      )}
      {tables
        .filter(([, rows]) => rows.length)
        .map(([name, rows]) => {
          const keys = Object.keys(rows[0]);
          const isNumber = (k: string) => rows.some((r) => typeof r[k] === "number");
          const isAddress = (k: string) => rows.every((r) => /^(0x[0-9a-f]+)?$/.test(text(r[k])));
          return (
            <section key={`${at} ${name}`} class="report" aria-label={words(name)}>
              <h2>{words(name)}</h2>
              <SortableTable
                caption={words(name)}
                natural
                cards
                limit={500}
                rows={rows.map((r, key) => ({
                  key,
                  cells: keys.map((k) =>
                    typeof r[k] === "number" ? (r[k] as number) : text(r[k]),
                  ),
                }))}
                selected={new Set()}
                columns={keys.map((k) => ({
                  title: words(k),
                  numeric: isNumber(k),
                  name: !isNumber(k) && !isAddress(k),
                  ...formatOf(k),
                }))}
                onSelect={(s) => {
                  const id = Object.values(rows[[...s][0]] ?? {}).find(
                    (v) => typeof v === "string" && /^0x[0-9a-f]+$/.test(v),
                  );
                  if (typeof id === "string") onChoose(id);
                }}
              />
            </section>
          );
        })}
    </div>
  );
}

const text = (v: unknown) => String(v ?? "");

/** Turns "retainedBytes" into "Retained bytes". */
const words = (key: string) =>
  (key.charAt(0).toUpperCase() + key.slice(1)).replace(/[A-Z]/g, (c, i) =>
    i ? ` ${c.toLowerCase()}` : c,
  );
