/* SPDX-License-Identifier: Apache-2.0 */
/* The page of web/, bundled at build time: HTML with the data between head and tail. Empty when npm was missing then. */
#pragma once

extern const char page_head[], page_tail[];
