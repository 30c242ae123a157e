/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/recording.h"

#include "base/file.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/contents.h"
#include "cli/convert.h"
#include "cli/losses.h"
#include "cli/replaced.h"
#include "export/export.h"
#include "jfr/cut.h"
#include "options/options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the agent's format for an output's extension. */
static char format_of(const char *output)
{
    return file_name_ends_in(output, ".hprof.txt") ? 'a'
           : file_name_ends_in(output, ".hprof")   ? 'b'
                                                   : 'r';
}

bool recording_is_direct(const char *output)
{
    return format_of(output) != 'r' || file_name_ends_in(output, ".jfr");
}

bool recording_is_copied(int fd, const char *output)
{
    static const char flight[] = {'F', 'L', 'R', 0};
    char head[sizeof(flight)];
    if (!recording_is_direct(output))
        return false;
    if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head))
        return true;
    return (memcmp(head, flight, sizeof(flight)) == 0) == (format_of(output) == 'r');
}

bool recording_check_output(const char *output)
{
    if (recording_is_direct(output) || export_format_of(output))
        return true;
    convert_complain_of_format(output);
    return false;
}

/* Returns the option that the word at `at` gives, if it makes the agent record, or -1. */
static int capture_of(const char *at)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        const char *name = option_table[i].name;
        if (option_table[i].gives && strncmp(at, name, strlen(name)) == 0 &&
            at[strlen(name)] == '=')
            return i;
    }
    return -1;
}

/* True for a heap dump, which is written next to the recording. */
static bool is_dump(const char *at)
{
    return strncmp(at, "heap=dump", 9) == 0;
}

/* Returns what these words make the agent record, as far as formats need it. */
static int captures_give(const char *words)
{
    int gives = 0;
    for (const char *at = words; *at; at += strcspn(at, ","), at += *at == ',') {
        int i = capture_of(at);
        gives |= i < 0 || is_dump(at) ? 0 : option_table[i].gives;
    }
    return gives;
}

/* Returns whether all stacks that these words make the agent record are of waits for locks. */
static bool only_of_locks(const char *words)
{
    static const enum option of_locks[] = {OPT_MONITOR, OPT_PARK, OPT_THREADS, OPT_LOCKS,
                                           OPT_DEADLOCK};

    for (const char *at = words; *at; at += strcspn(at, ","), at += *at == ',') {
        int i = is_dump(at) ? -1 : capture_of(at);
        bool locks = i < 0 || !(option_table[i].gives & GIVES_STACKS);
        for (size_t k = 0; k < ARRAY_SIZE(of_locks) && !locks; k++)
            locks = (int)of_locks[k] == i;
        if (!locks)
            return false;
    }
    return true;
}

/* Returns whether one of the words makes the agent record. */
static bool captures_something(const char *words)
{
    for (const char *at = words; *at; at += strcspn(at, ","), at += *at == ',')
        if (capture_of(at) >= 0)
            return true;
    return false;
}

void recording_options(const struct capture_options *c, const char *output, const char *file,
                       struct buf *ret)
{
    const char *given = buf_str(&c->options);
    bool always = capture_always(c);
    buf_printf(ret, "format=%c%s", always ? 'r' : format_of(output), file ? ",file=" : "");
    for (const char *p = file; p && *p; p++)
        /* the agent expands %p and %t; these are already expanded */
        buf_printf(ret, *p == '%' ? "%%%%" : "%c", *p);
    if (!always && !captures_something(given))
        buf_string(ret, ",cpu=samples");
    if (*given)
        buf_printf(ret, ",%s", given);
}

/*
 * Checks that the recording can be converted into the output, because after the program's end it is
 * too late.
 */
static bool check_gives(const char *words, const char *output)
{
    const struct export_format *format =
        recording_is_direct(output) ? NULL : export_format_of(output);
    if (!format)
        return true;
    int gives = captures_give(words);
    if (format->threads && !(gives & GIVES_WAITS))
        complain(output, "this format shows threads, but no requested option records them",
                 "add --threads, or write a .jfr");
    else if (format->any && !(gives & (GIVES_STACKS | GIVES_WAITS | GIVES_PAGE)))
        complain(output, "a page can show none of the requested data",
                 "add --cpu, or write a .jfr");
    else if (!format->threads && !format->any && !(gives & GIVES_STACKS))
        complain(output, "this format shows stacks, but no requested option records them",
                 "add --cpu, or write a .jfr");
    else {
        if (!format->threads && !format->any && only_of_locks(words))
            fprintf(stderr,
                    "jvmscope: note: %s: this format shows only the waits for locks of what is "
                    "recorded, and if there are none, the file is not written; add --cpu, or write "
                    "a .jfr\n",
                    output);
        return true;
    }
    return false;
}

/* Checks beforehand what the agent would refuse only after the VM has been started or contacted. */
static bool check_format(const struct options *o, const char *output)
{
    for (int i = 0; format_of(output) != 'r' && i < OPTION_COUNT; i++) {
        enum option option = (enum option)i;
        bool off = option_table[option].kind == OPTION_YES_NO && !option_on(o, option);
        if (!option_table[i].gives || option_table[i].gives & GIVES_HPROF || !o->v[option].given ||
            off)
            continue;
        _cleanup_(buf_release) struct buf what = BUF(256);
        buf_printf(&what, "%s is recorded into a .jfr, not into HPROF's output",
                   option_table[option].flag);
        complain(output, buf_str(&what), NULL);
        return false;
    }
    return true;
}

/* Formats a duration in the largest unit that leaves a whole number, because messages show it. */
static void put_time(struct buf *words, uint64_t ns)
{
    uint64_t unit = ns % UINT64_C(1000000000) == 0 ? UINT64_C(1000000000)
                    : ns % UINT64_C(1000000) == 0  ? UINT64_C(1000000)
                                                   : 1;
    buf_printf(words, ",duration=%llu%s", (unsigned long long)(ns / unit),
               unit == 1                   ? "ns"
               : unit == UINT64_C(1000000) ? "ms"
                                           : "s");
}

/* Checks that the name of a ring does not promise another format. */
static bool check_ring_name(const char *output)
{
    if (file_name_ends_in(output, ".jfr") ||
        (format_of(output) == 'r' && !export_format_of(output)))
        return true;
    complain(output, "--always records into a ring, which has none of the formats of convert",
             "name it .ring; later, jvmscope dump -o FILE writes what was recorded in any format");
    return false;
}

/* output: NULL for a recording that is always on. */
static void note_without_effect(const struct options *o, const char *output)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_table[i];
        /* A .jfr from which the output is made has chunks, the output has none. */
        bool lacks = i == OPT_CHUNK && output && !file_name_ends_in(output, ".jfr");
        if (!row->acts_on || !row->flag || !o->v[i].given ||
            (!lacks && option_has_effect(o, (enum option)i)))
            continue;
        fprintf(stderr, "jvmscope: note: %s: has no effect on %s\n", row->flag,
                lacks ? output : "what is recorded");
    }
}

bool recording_check(const struct capture_options *c, const char *output, const char *command)
{
    _cleanup_(buf_release) struct buf why = BUF(4096), words = BUF(1 << 20);
    struct options o;
    recording_options(c, output, capture_always(c) && !c->output ? NULL : "-", &words);
    if (capture_always(c) && c->time_ns)
        put_time(&words, c->time_ns);
    int r = buf_error(&words) ? -E2BIG : options_parse(&o, buf_str(&words), &why);
    if (r < 0) {
        complain(command, r == -E2BIG ? "the options are too long" : buf_str(&why), NULL);
        return false;
    }
    note_without_effect(&o, capture_always(c) ? NULL : output);
    if (capture_always(c) && c->output && !check_ring_name(c->output)) {
        options_release(&o);
        return false;
    }
    bool can =
        capture_always(c) || (check_format(&o, output) && check_gives(buf_str(&words), output));
    options_release(&o);
    return can;
}

static bool written_since(const struct stat *st, const struct timespec *since)
{
    return st->st_mtim.tv_sec > since->tv_sec ||
           (st->st_mtim.tv_sec == since->tv_sec && st->st_mtim.tv_nsec >= since->tv_nsec);
}

bool recording_written(const char *path, const struct timespec *since)
{
    struct stat st;
    return stat(path, &st) == 0 && written_since(&st, since);
}

/*
 * Returns the size of a file; of one that is being recorded, without the space that is reserved
 * after its events.
 */
static uint64_t bytes_of(const char *path, bool ended)
{
    struct stat st;
    uint64_t used;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return 0;
    return !ended && jfr_used_bytes(fd, &used) == 0 ? used : (uint64_t)st.st_size;
}

static uint64_t older_dumps; /* bit i: recording_put_dump_name's dump i, as far as there are bits */

void recording_put_dump_name(struct buf *b, const char *recording, unsigned i)
{
    const char *point = strrchr(recording, '.'), *slash = strrchr(recording, '/');
    bool whole = !point || (slash && point < slash) || file_name_ends_in(recording, ".hprof");
    buf_printf(b, "%.*s", (int)(whole ? strlen(recording) : (size_t)(point - recording)),
               recording);
    if (i == 0)
        buf_string(b, ".oom");
    else if (i > 1)
        buf_printf(b, ".%u", i);
    buf_string(b, ".hprof");
}

void recording_note_older(const char *output)
{
    replaced_note(output);
    older_dumps = 0;
    for (unsigned i = 0; i < 64; i++) {
        _cleanup_(buf_release) struct buf path = BUF(2 * PATH_MAX);
        recording_put_dump_name(&path, output, i);
        if (!buf_error(&path) && replaced_holds_something(buf_str(&path)))
            older_dumps |= UINT64_C(1) << i;
    }
}

/* Returns whether the tables that the recording was to get at its end are missing. */
static bool lacks_tables(const struct capture_options *c, const char *path)
{
    const char *words = c ? buf_str(&c->options) : "";
    return !strstr(words, "onoom=") && !strstr(words, "doe=n") && contents_lacks_tables(path);
}

static bool announce(const struct capture_options *c, const char *path, const char *shown,
                     const char *where, bool ended)
{
    char size[24];
    if (access(path, F_OK) < 0)
        return false;
    bool direct = recording_is_direct(shown);
    const char *shown_by =
        direct && !*where ? contents_shown_by(path, c ? buf_str(&c->options) : NULL) : NULL;
    fprintf(stderr, "jvmscope: wrote %s%s (%s)%s", shown, where,
            format_size(size, bytes_of(path, ended)), replaced_words(shown));
    if (shown_by)
        fprintf(stderr, "; see it with: jvmscope %s %s", shown_by, shown);
    fputc('\n', stderr);
    /* For a recording, contents_report reports what is missing. */
    if (direct && !file_name_ends_in(shown, ".jfr") && !*where && !shown_by &&
        lacks_tables(c, path))
        complain(shown, "the recording was not ended: everything is lost",
                 "this format gets what was recorded only at the end; a .jfr gets it all the time");
    else if (direct && !file_name_ends_in(shown, ".jfr") && !*where && !shown_by)
        complain(shown, "holds nothing that a command would show",
                 c && strstr(buf_str(&c->options), "onoom=") ? "no OutOfMemoryError was thrown"
                                                             : NULL);
    return file_name_ends_in(shown, ".jfr");
}

int recording_announce(const struct capture_options *c, const char *output)
{
    if (!announce(c, output, output, "", true))
        return recording_is_direct(output) && lacks_tables(c, output);
    losses_report_file(output, NULL);
    return contents_report(output, output);
}

int recording_complain_kept(const char *path, const char *where)
{
    _cleanup_(buf_release) struct buf why = BUF(2 * PATH_MAX);
    const char *shown_by = where ? NULL : contents_shown_by(path, NULL);
    /* What report shows is what the output would have had. */
    if (shown_by && strcmp(shown_by, "report") == 0)
        shown_by = NULL;
    if (shown_by)
        buf_printf(&why, "see it with: jvmscope %s %s", shown_by, path);
    return complain("the recording is still at", path, shown_by ? buf_str(&why) : where);
}

int recording_announce_open(int fd, const char *shown, const char *where, bool ended)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (!announce(NULL, path, shown, where, ended))
        return 0;
    losses_report_as(path, shown, ended);
    return contents_report(path, shown);
}

void recording_announce_dumps(const char *recording, const struct timespec *since)
{
    bool more = true;
    for (unsigned i = 0; more; i++) {
        _cleanup_(buf_release) struct buf path = BUF(2 * PATH_MAX);
        char size[24];
        struct stat st;
        recording_put_dump_name(&path, recording, i);
        bool exists = !buf_error(&path) && stat(buf_str(&path), &st) == 0;
        if (exists && written_since(&st, since))
            fprintf(stderr, "jvmscope: wrote %s (%s)%s; see it with: jvmscope heap leaks %s\n",
                    buf_str(&path), format_size(size, (uint64_t)st.st_size),
                    i < 64 && older_dumps >> i & 1 ? REPLACED_WORDS : "", buf_str(&path));
        more = i == 0 || exists;
        if (i == 0 && !(exists && written_since(&st, since)) &&
            contents_requested(recording, OPT_ONOOM) && !contents_shown_by(recording, NULL))
            complain(recording, "no OutOfMemoryError was thrown, so there is no heap dump of one",
                     NULL);
    }
}
