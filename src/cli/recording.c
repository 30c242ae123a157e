/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/recording.h"

#include "agent/options.h"
#include "base/parse.h"
#include "cli/builtin.h"
#include "cli/commands.h"
#include "export/export.h"
#include "jfr/reader.h"

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

/* Options that make the agent record something, and the command that shows it when it is not `report`. */
static const struct {
    enum option option;
    const char *shown_by;
} captures[] = {
    {OPT_CPU, NULL},
    {OPT_HEAP, NULL},
    {OPT_MONITOR, NULL},
    {OPT_ALLOC, NULL},
    {OPT_LIVE, NULL},
    {OPT_ONOOM, NULL},
    {OPT_PARK, NULL},
    {OPT_THREADS, "threads summary"},
    {OPT_LOCKS, "threads summary"},
    {OPT_TRACE, "trace"},
    {OPT_COVER, "coverage"},
    {OPT_LOG, "trace"},
    {OPT_WATCH, "trace"},
    {OPT_EXCEPTIONS, "trace --exceptions"},
    {OPT_EVENTS, "trace"},
    {OPT_DEADLOCK, "threads deadlocks"},
};

/* Whether one of the words makes the agent record; *ret_shown_by is the command that shows the first of them. */
static bool captures_something(const char *words, const char **ret_shown_by)
{
    *ret_shown_by = NULL;
    for (const char *at = words; *at; at += strcspn(at, ","), at += *at == ',') {
        for (size_t i = 0; i < ARRAY_SIZE(captures); i++) {
            const char *name = option_table[captures[i].option].name;
            if (strncmp(at, name, strlen(name)) != 0 || at[strlen(name)] != '=')
                continue;
            *ret_shown_by = captures[i].shown_by;
            return true;
        }
    }
    return false;
}

/* The words as text; "" where there are none. */
static const char *words_of(const struct capture *c)
{
    return c->options.len ? (const char *)c->options.data : "";
}

void recording_options(const struct capture *c, const char *output, const char *file, struct buf *ret)
{
    const char *given = words_of(c), *shown_by;
    buf_printf(ret, "format=%c,file=", format_of(output));
    for (const char *p = file; *p; p++)
        buf_printf(ret, *p == '%' ? "%%%%" : "%c", *p); /* the agent expands %p and %t: these are done */
    if (!captures_something(given, &shown_by))
        buf_string(ret, ",cpu=samples");
    if (*given)
        buf_printf(ret, ",%s", given);
}

/* One line for each pattern that no method matched. */
static void tell_unmatched(const char *path)
{
    static const struct rec_select unmatched[] = {{"jvmscope.TraceUnmatched", 1}, {0}};
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    struct rec_event e;
    if (recording_open(&r, path, &why) < 0 || recording_select(r, unmatched) < 0)
        return;
    while (recording_next(r, &e) > 0)
        complain(rec_string(&e.object, "pattern", "?"), "no method matches", "the pattern traced nothing");
}

void recording_announce(const struct capture *c, const char *output)
{
    struct stat st;
    char size[24];
    if (stat(output, &st) < 0)
        return;
    const char *shown_by = NULL;
    captures_something(c ? words_of(c) : "", &shown_by);
    fprintf(stderr, "jvmscope: wrote %s (%s)", output, format_size(size, (uint64_t)st.st_size));
    if (ends_in(output, ".jfr"))
        fprintf(stderr, "; see it with: jvmscope %s %s", shown_by ? shown_by : "report", output);
    fputc('\n', stderr);
    if (shown_by && strcmp(shown_by, "trace") == 0 && ends_in(output, ".jfr"))
        tell_unmatched(output);
}
