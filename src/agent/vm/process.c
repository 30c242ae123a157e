/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/process.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/macro.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROC_MAX = 1 << 20 };

uint64_t process_start_ms(void)
{
    _cleanup_free_ uint8_t *text = NULL;
    size_t len;
    unsigned long long ticks;
    long per_second = sysconf(_SC_CLK_TCK);
    if (file_read_path("/proc/self/stat", PROC_MAX, &text, &len) < 0 || per_second <= 0)
        return 0;
    /*
     * proc(5): the name, in parentheses, may contain anything; the start time, since boot, is the
     * 22nd field, which is the 20th after the name.
     */
    const char *at = memrchr(text, ')', len);
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, "%llu", &ticks) != 1)
        return 0;
    uint64_t boot_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
    return boot_ns / NS_PER_MS + ticks * 1000 / (uint64_t)per_second;
}

static void append(struct buf *to, const char *text)
{
    if (text && *text)
        buf_printf(to, "%s%s", to->len ? " " : "", text);
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

/* Appends the options that are before the main class or jar on a command line. */
static void append_options(struct buf *to, const char *at, const char *end)
{
    static const char *const class_path[] = {"-cp", "-classpath", "--class-path", NULL};
    static const char *const two_words[] = {"-p", "--module-path", "--add-modules",
                                            "--upgrade-module-path", NULL};
    static const char *const last[] = {"-jar", "-m", "--module", NULL};
    for (at += strlen(at) + 1; at < end && *at == '-' && !is_one_of(at, last);
         at += strlen(at) + 1) {
        if (is_one_of(at, class_path)) {
            at += strlen(at) + 1;
            continue;
        }
        append(to, at);
        if (is_one_of(at, two_words) && at + strlen(at) + 1 < end)
            append(to, at += strlen(at) + 1);
    }
}

void process_vm_arguments(struct buf *to)
{
    char program[4096];
    _cleanup_free_ uint8_t *text = NULL;
    size_t len = 0;
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[MAX(n, 0)] = 0;
    const char *name = strrchr(program, '/');
    append(to, getenv("JAVA_TOOL_OPTIONS"));
    /* Each word is terminated by NUL. */
    if (name && strcmp(name, "/java") == 0 &&
        file_read_path("/proc/self/cmdline", PROC_MAX, &text, &len) == 0 && len && !text[len - 1])
        append_options(to, (const char *)text, (const char *)text + len);
    append(to, getenv("_JAVA_OPTIONS"));
}
