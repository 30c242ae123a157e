/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provides the bytes of a dump from any source: a file is mapped; a .gz, a pipe or "-" is unpacked
 * into an unlinked file.
 */
#pragma once

#include "base/file.h"

#include <stdbool.h>

/*
 * Provides the bytes of the dump at `path` in *ret. *ret_spooled: they were unpacked. *ret_damaged:
 * the compressed data is damaged or cut, or something else follows it; *ret is what could be
 * unpacked. Returns 0 or a negative errno: -EBADMSG when the file is empty or what is unpacked does
 * not begin like HPROF, -ENOSPC when unpacking would fill the disk.
 */
int heap_spool_open(const char *path, struct file_map *ret, bool *ret_spooled,
                    bool *ret_damaged) must_check;
