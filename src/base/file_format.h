/* SPDX-License-Identifier: Apache-2.0 */
/* What a file is, according to its first bytes. */
#pragma once

#include <stddef.h>

enum file_format {
    FORMAT_NOTHING, /* empty, or only room: the file of a recorder that was killed at its start */
    FORMAT_OTHER,
    FORMAT_JFR,
    FORMAT_RING,       /* of a recording that is always on (jfr/ring.h) */
    FORMAT_HPROF,      /* the binary format: a heap dump or the output of HPROF */
    FORMAT_HPROF_TEXT, /* also without its first line, which cpu=old leaves out */
    FORMAT_GZIP,
    FORMAT_PROGRAM, /* a database, an archive or a program */
};

/* The number of bytes that suffice. */
#define FILE_FORMAT_BYTES 64

#define JFR_RING_MAGIC "JVMRING"

enum file_format file_format_of(const void *bytes, size_t len);
