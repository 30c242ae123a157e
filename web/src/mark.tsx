// SPDX-License-Identifier: Apache-2.0
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 24 24" aria-label="jvmscope" role="img">
      <rect x="1" y="3" width="22" height="5" rx="1.2" />
      <rect x="1" y="9.5" width="14" height="5" rx="1.2" opacity=".8" />
      <rect x="1" y="16" width="6.5" height="5" rx="1.2" opacity=".6" />
      <rect x="16.5" y="9.5" width="6.5" height="5" rx="1.2" opacity=".45" />
    </svg>
  );
}
