// SPDX-License-Identifier: Apache-2.0
// The size of an element while it is in the document.
import { useLayoutEffect, useState } from "preact/hooks";

/**
 * Width and height of the element's content in pixels, 0 before the first layout. The observer ends before the element leaves
 * the document; if it ended in an effect that runs after painting, a late callback would find no element.
 */
export function useSize(element: preact.RefObject<HTMLElement | null>): [number, number] {
  const [size, setSize] = useState<[number, number]>([0, 0]);
  useLayoutEffect(() => {
    const e = element.current;
    if (!e) return;
    const watch = new ResizeObserver(() => setSize([e.clientWidth, e.clientHeight]));
    watch.observe(e);
    return () => watch.disconnect();
  }, []);
  return size;
}
