// SPDX-License-Identifier: Apache-2.0
import { split } from "./format";

export type Code = "method" | "class";

function splitClass(label: string): { pkg: string; cls: string; name: string } {
  const at = label.replace(/\/.*$/, "").lastIndexOf(".") + 1;
  return { pkg: label.slice(0, at), cls: "", name: label.slice(at) };
}

/** The name of a method or of a class in its parts: where there is little room, its end stays. */
export function Parts({ label, code }: { label: string; code: Code }) {
  const { pkg, cls, name } = code === "class" ? splitClass(label) : split(label);
  return (
    <span class="parts">
      {pkg && <span class="pkg dim">{pkg}</span>}
      {cls && <span class="cls">{cls}</span>}
      {cls && <span class="dot">.</span>}
      <b>{name}</b>
    </span>
  );
}
