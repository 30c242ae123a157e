/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/replaced.h"

#include "base/file.h"
#include "base/file_format.h"
#include "base/macro.h"
#include "cli/commands.h"
#include "cli/contents.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const words[] = {
    [FORMAT_OTHER] = "no file of this format",
    [FORMAT_JFR] = "a flight recording",
    [FORMAT_RING] = "the ring of a recording that is always on",
    [FORMAT_HPROF] = "a heap dump or binary HPROF output",
    [FORMAT_HPROF_TEXT] = "HPROF's text",
    [FORMAT_GZIP] = "compressed with gzip",
    [FORMAT_PROGRAM] = "a database, an archive or a program",
};

/* A file that cannot be read is reported by whoever writes it. */
static enum file_format format_of(const char *path)
{
    char bytes[FILE_FORMAT_BYTES];
    struct stat st;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return FORMAT_NOTHING;
    ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
    return n <= 0 ? FORMAT_NOTHING : file_format_of(bytes, (size_t)n);
}

static enum file_format format_of_name(const char *name)
{
    static const struct {
        const char *end;
        enum file_format format;
    } ends[] = {{".jfr", FORMAT_JFR},
                {REPLACED_RING, FORMAT_RING},
                {".hprof", FORMAT_HPROF},
                {".hprof.txt", FORMAT_HPROF_TEXT},
                {".gz", FORMAT_GZIP}};

    size_t n = strlen(name);
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        size_t len = strlen(ends[i].end);
        if (n >= len && strcasecmp(name + n - len, ends[i].end) == 0)
            return ends[i].format;
    }
    return FORMAT_OTHER;
}

/* Complains that a file would be lost. Returns false. */
static bool refuse(const char *output, const char *is)
{
    char what[160];
    snprintf(what, sizeof(what), "what is there is %s, and would be lost", is);
    complain(output, what, "name another output, or remove the file");
    return false;
}

bool replaced_check(const char *output, const char *as)
{
    enum file_format found = format_of(output);
    if (found == FORMAT_NOTHING || found == format_of_name(as ? as : output))
        return true;
    return refuse(output, words[found]);
}

bool replaced_check_dump(const char *output)
{
    const char *shown = format_of(output) == FORMAT_HPROF ? contents_shown_by(output, NULL) : NULL;
    return !shown || strcmp(shown, "heap leaks") != 0 || refuse(output, "a heap dump");
}

static char older[PATH_MAX];

bool replaced_holds_something(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

void replaced_note(const char *output)
{
    snprintf(older, sizeof(older), "%s", replaced_holds_something(output) ? output : "");
}

const char *replaced_words(const char *output)
{
    return *older && strcmp(older, output) == 0 ? REPLACED_WORDS : "";
}

void replaced_announce(const char *output)
{
    if (*replaced_words(output))
        fprintf(stderr, "jvmscope: wrote %s%s\n", output, REPLACED_WORDS);
}
