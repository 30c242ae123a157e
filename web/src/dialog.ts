// SPDX-License-Identifier: Apache-2.0

/** Opens a dialog at its beginning: its button has the focus, and the browser scrolls to it at the end of a long text. */
export function showAtTop(dialog: HTMLDialogElement) {
  dialog.showModal();
  dialog.scrollTop = 0;
}
