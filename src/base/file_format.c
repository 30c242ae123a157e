/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_format.h"

#include "base/macro.h"

#include <stdbool.h>
#include <string.h>

#define BEGIN(text, format)            \
    {                                  \
        text, sizeof(text) - 1, format \
    }

static const struct {
    const char *text;
    size_t len;
    enum file_format format;
} begins[] = {
    BEGIN("FLR\0", FORMAT_JFR),
    BEGIN(JFR_RING_MAGIC, FORMAT_RING),
    BEGIN("JAVA PROFILE 1.0", FORMAT_HPROF),
    /* The sections that hprof/text.h writes. A number follows TRACE directly (begins_trace). */
    BEGIN("count callee caller time\n", FORMAT_HPROF_TEXT),
    BEGIN("THREAD START (obj=", FORMAT_HPROF_TEXT),
    BEGIN("THREAD END (id = ", FORMAT_HPROF_TEXT),
    BEGIN("WAIT: MONITOR ", FORMAT_HPROF_TEXT),
    BEGIN("WAITED: MONITOR ", FORMAT_HPROF_TEXT),
    BEGIN("SITES BEGIN (ordered by ", FORMAT_HPROF_TEXT),
    BEGIN("HEAP DUMP BEGIN (", FORMAT_HPROF_TEXT),
    BEGIN("MONITOR DUMP BEGIN\n", FORMAT_HPROF_TEXT),
    BEGIN("MONITOR TIME BEGIN (total = ", FORMAT_HPROF_TEXT),
    BEGIN("\x1f\x8b", FORMAT_GZIP), /* RFC 1952, section 2.3.1 */
    BEGIN("SQLite format 3\0", FORMAT_PROGRAM),
    BEGIN("PK\3\4", FORMAT_PROGRAM),
    BEGIN("\xca\xfe\xba\xbe", FORMAT_PROGRAM),
    BEGIN("\177ELF", FORMAT_PROGRAM),
};

/* "TRACE 1:" and then the end of the line or " (thread=". */
static bool begins_trace(const char *head)
{
    if (strncmp(head, "TRACE ", 6) != 0)
        return false;
    size_t digits = strspn(head + 6, "0123456789");
    const char *rest = head + 6 + digits;
    return digits > 0 && digits <= 10 &&
           (strncmp(rest, ":\n", 2) == 0 || strncmp(rest, ": (thread=", 10) == 0);
}

enum file_format file_format_of(const void *bytes, size_t len)
{
    char head[FILE_FORMAT_BYTES + 1] = "";
    static const char zeros[FILE_FORMAT_BYTES];
    len = MIN(len, FILE_FORMAT_BYTES);
    if (len == 0 || memcmp(bytes, zeros, len) == 0)
        return FORMAT_NOTHING;
    memcpy(head, bytes, len);
    /* The text has a comma after the version. */
    if (strncmp(head, "JAVA PROFILE 1.0", 16) == 0 && memchr(head, ',', 19))
        return FORMAT_HPROF_TEXT;
    for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
        if (len >= begins[i].len && memcmp(head, begins[i].text, begins[i].len) == 0)
            return begins[i].format;
    return begins_trace(head) ? FORMAT_HPROF_TEXT : FORMAT_OTHER;
}
