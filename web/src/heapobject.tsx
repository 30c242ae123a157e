// SPDX-License-Identifier: Apache-2.0
// One object: its contents, what refers to it, why it is alive.
import { bytes, count } from "./format";
import { Ask, HeapObject, Inspected, NotInPage, PathStep, simple, useAnswer } from "./heapdata";

interface Props {
  ask: Ask;
  object: string; // "0x..." or a class
  onChoose: (object: string) => void;
}

export function Ref({
  id,
  name,
  value,
  onChoose,
}: {
  id: string | null;
  name: string;
  value: string | null;
  onChoose: (o: string) => void;
}) {
  const text = (
    <>
      {simple(name)} {value !== null && <span class="value">{value.slice(0, 200)}</span>}
    </>
  );
  return id ? (
    <button class="link" title={`${name} @ ${id}`} onClick={() => onChoose(id)}>
      {text}
    </button>
  ) : (
    text
  );
}

export const Why = ({ error }: { error: Error }) => (
  <p class="dim">
    {error instanceof NotInPage ? (
      <>
        This file holds a part of the heap. <code>jvmscope serve</code> on the dump answers for
        every object.
      </>
    ) : (
      error.message
    )}
  </p>
);

export function Inspector({ ask, object, onChoose }: Props) {
  return object.startsWith("0x") ? (
    <One ask={ask} object={object} onChoose={onChoose} />
  ) : (
    <Instances ask={ask} object={object} onChoose={onChoose} />
  );
}

function One({ ask, object, onChoose }: Props) {
  const { answer: o, error } = useAnswer<Inspected>(ask, "objects", { operand: object });
  const { answer: p, error: noPath } = useAnswer<{ path: PathStep[]; notes?: string[] }>(
    ask,
    "paths",
    { operand: object },
  );
  if (error) return <Why error={error} />;
  if (!o) return <p class="dim">…</p>;
  const dominator = o.dominatorObject;
  return (
    <div class="inspector">
      <h2 class="break">{o.what}</h2>
      <p>
        <b>{bytes(o.retained)}</b> retained <span class="dim">· {bytes(o.shallow)} itself</span>
      </p>
      {o.root && <p>GC root: {o.root}</p>}
      {o.dominator && (
        <p>
          kept alive by{" "}
          {dominator ? (
            <button class="link" onClick={() => onChoose(dominator)}>
              {o.dominator}
            </button>
          ) : (
            o.dominator
          )}
        </p>
      )}
      {o.notes?.map((n) => (
        <p class="dim">{n}</p>
      ))}
      <h3>Path from a GC root</h3>
      {noPath ? (
        <Why error={noPath} />
      ) : (
        <ol class="path">
          {(p?.path ?? []).map((s) => (
            <li key={s.object}>
              <span class="dim">{s.via}</span>{" "}
              {s.object === object ? (
                <b>{simple(s.class)}</b>
              ) : (
                <Ref id={s.object} name={s.class} value={s.value} onChoose={onChoose} />
              )}
            </li>
          ))}
          {p && !p.path?.length && <li class="dim">{p.notes?.join(" ") ?? "none"}</li>}
        </ol>
      )}
      <h3>Holds</h3>
      <table class="small refs">
        <caption class="sr">Fields</caption>
        <thead class="sr">
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Value</th>
            <th scope="col">Retained</th>
          </tr>
        </thead>
        <tbody>
          {(o.fields ?? []).map((f) => (
            <tr key={f.field}>
              <td>{f.field}</td>
              <td>
                {f.object ? (
                  <Ref id={f.object} name={f.type} value={f.value} onChoose={onChoose} />
                ) : (
                  <span class="value" title={f.type}>
                    {f.value ?? "null"}
                  </span>
                )}
              </td>
              <td class="num">{f.retained !== null ? bytes(f.retained) : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {!o.fields?.length && <p class="dim">Nothing.</p>}
      <h3>Referred to by {count(o.incomingCount ?? o.incoming?.length ?? 0)}</h3>
      <table class="small refs">
        <caption class="sr">Objects that refer to it</caption>
        <thead class="sr">
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Object</th>
            <th scope="col">Retained</th>
          </tr>
        </thead>
        <tbody>
          {(o.incoming ?? []).map((f, i) => (
            <tr key={i}>
              <td>{f.via}</td>
              <td>
                <Ref id={f.object} name={f.class} value={f.value} onChoose={onChoose} />
              </td>
              <td class="num">{bytes(f.retained)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Instances({ ask, object, onChoose }: Props) {
  const { answer, error } = useAnswer<{ count: number; objects: HeapObject[] }>(ask, "objects", {
    operand: object,
  });
  if (error) return <Why error={error} />;
  if (!answer) return <p class="dim">…</p>;
  return (
    <div class="inspector">
      <h2 class="break">{object}</h2>
      <p>
        {count(answer.count)} object{answer.count === 1 ? "" : "s"}
        {answer.objects.length < answer.count && (
          <span class="dim">, of which {count(answer.objects.length)} are shown</span>
        )}
      </p>
      <table class="small refs">
        <caption class="sr">Objects</caption>
        <thead class="sr">
          <tr>
            <th scope="col">Object</th>
            <th scope="col">Retained</th>
          </tr>
        </thead>
        <tbody>
          {answer.objects.slice(0, 500).map((o) => (
            <tr key={o.object}>
              <td>
                <Ref id={o.object} name={o.class} value={o.value ?? o.object} onChoose={onChoose} />
              </td>
              <td class="num">{bytes(o.retained)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
