/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/replaced.h"

#include "base/file.h"
#include "base/macro.h"
#include "cli/commands.h"
#include "hprof/text.h"
#include "jfr/ring.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a file begins like. */
enum kind {
    KIND_EMPTY,
    KIND_OTHER,
    KIND_RECORDING,
    KIND_RING,
    KIND_DUMP,
    KIND_TEXT,
    KIND_GZIP,
    KIND_PROGRAM
};

static const char *const words[] = {
    [KIND_OTHER] = "no file of this format",
    [KIND_RECORDING] = "a flight recording",
    [KIND_RING] = "the ring of a recording that is always on",
    [KIND_DUMP] = "a heap dump or binary HPROF output",
    [KIND_TEXT] = "HPROF's text",
    [KIND_GZIP] = "compressed with gzip",
    [KIND_PROGRAM] = "a database, an archive or a program",
};

static enum kind kind_of_bytes(const char *bytes, size_t len)
{
    static const struct {
        const char *begin;
        size_t len;
        enum kind kind;
    } begins[] = {{"FLR", 4, KIND_RECORDING},
                  {"SQLite format 3", 16, KIND_PROGRAM},
                  {"PK\3\4", 4, KIND_PROGRAM},
                  {"\xca\xfe\xba\xbe", 4, KIND_PROGRAM},
                  {"\x7f"
                   "ELF",
                   4, KIND_PROGRAM}};

    size_t zeros = 0;
    /* The file of a recorder that was killed at its start may have nothing but room. */
    while (zeros < len && !bytes[zeros])
        zeros++;
    if (zeros == len)
        return KIND_EMPTY;
    for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
        if (len >= begins[i].len && memcmp(bytes, begins[i].begin, begins[i].len) == 0)
            return begins[i].kind;
    return file_begins_gzip(bytes, len)                             ? KIND_GZIP
           : jfr_ring_begins(bytes, len)                            ? KIND_RING
           : hprof_text_begins(bytes, len)                          ? KIND_TEXT
           : len > 16 && memcmp(bytes, "JAVA PROFILE 1.0", 16) == 0 ? KIND_DUMP
                                                                    : KIND_OTHER;
}

/* A file that cannot be read is reported by whoever writes it. */
static enum kind kind_of(const char *path)
{
    char bytes[64];
    struct stat st;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return KIND_EMPTY;
    ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
    return n <= 0 ? KIND_EMPTY : kind_of_bytes(bytes, (size_t)n);
}

static enum kind kind_of_name(const char *name)
{
    static const struct {
        const char *end;
        enum kind kind;
    } ends[] = {{".jfr", KIND_RECORDING},
                {REPLACED_RING, KIND_RING},
                {".hprof", KIND_DUMP},
                {".hprof.txt", KIND_TEXT},
                {".gz", KIND_GZIP}};

    size_t n = strlen(name);
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        size_t len = strlen(ends[i].end);
        if (n >= len && strcasecmp(name + n - len, ends[i].end) == 0)
            return ends[i].kind;
    }
    return KIND_OTHER;
}

bool replaced_check(const char *output, const char *as)
{
    enum kind found = kind_of(output);
    if (found == KIND_EMPTY || found == kind_of_name(as ? as : output))
        return true;
    char what[160];
    snprintf(what, sizeof(what), "what is there is %s, and would be lost", words[found]);
    complain(output, what, "name another output, or remove the file");
    return false;
}
