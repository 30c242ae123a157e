/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/recording.h"

#include "agent/options.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "export/export.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* The agent's formats by extension. */
static char format_of(const char *output)
{
    return ends_in(output, ".hprof.txt") ? 'a' : ends_in(output, ".hprof") ? 'b' : 'r';
}

bool recording_is_direct(const char *output)
{
    return format_of(output) != 'r' || ends_in(output, ".jfr");
}

bool recording_check_output(const char *output)
{
    if (recording_is_direct(output) || export_format_of(output))
        return true;
    complain(output, "no format has this extension", "jvmscope convert --help lists them");
    return false;
}

/* Options that make the agent record something. */
static const enum option captures[] = {OPT_CPU,   OPT_HEAP,       OPT_MONITOR, OPT_ALLOC,   OPT_LIVE,  OPT_ONOOM,
                                       OPT_PARK,  OPT_THREADS,    OPT_LOCKS,   OPT_TRACE,   OPT_COVER, OPT_LOG,
                                       OPT_WATCH, OPT_EXCEPTIONS, OPT_EVENTS,  OPT_DEADLOCK};

static bool captures_something(const char *words)
{
    for (const char *at = words; *at; at += strcspn(at, ","), at += *at == ',') {
        for (size_t i = 0; i < ARRAY_SIZE(captures); i++) {
            const char *name = option_table[captures[i]].name;
            if (strncmp(at, name, strlen(name)) == 0 && at[strlen(name)] == '=')
                return true;
        }
    }
    return false;
}

void recording_options(const struct capture *c, const char *output, const char *file, struct buf *ret)
{
    struct buf words = c->options;
    buf_printf(ret, "format=%c,file=", format_of(output));
    for (const char *p = file; *p; p++)
        buf_printf(ret, *p == '%' ? "%%%%" : "%c", *p); /* the agent expands %p and %t: these are done */
    const char *given = words.len ? (const char *)words.data : "";
    if (!captures_something(given))
        buf_string(ret, ",cpu=samples");
    if (*given)
        buf_printf(ret, ",%s", given);
}

void recording_announce(const char *output)
{
    struct stat st;
    char size[24];
    if (stat(output, &st) < 0)
        return;
    fprintf(stderr, "jvmscope: wrote %s (%s)%s%s\n", output, format_size(size, (uint64_t)st.st_size),
            ends_in(output, ".jfr") ? "; see it with: jvmscope report " : "", ends_in(output, ".jfr") ? output : "");
}
