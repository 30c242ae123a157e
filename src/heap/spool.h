/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a dump, wherever they come from: a file is mapped; a .gz, a pipe or "-" is unpacked into an unlinked file. */
#pragma once

#include "base/file.h"

#include <stdbool.h>

/* Negative errno; -EBADMSG when it does not begin as HPROF does, -ENOSPC when unpacking would fill the disk. */
int heap_spool_open(const char *path, struct file_map *ret, bool *ret_spooled) must_check;
