/* SPDX-License-Identifier: Apache-2.0 */
/* status: describes in words what the agent in a VM does. --json has all of its counters. */
#include "base/json.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/ring.h"
#include "cli/target.h"
#include "hotspot/hsperf.h"

#include <stdlib.h>
#include <string.h>

static void print_status_json(const char *answer)
{
    _cleanup_free_ char *copy = strdup(answer);
    _cleanup_(buf_release) struct buf out = BUF(1 << 20);
    struct json j = {&out, false};
    json_begin_object(&j);
    char *line, *rest = copy;
    while ((line = strsep(&rest, "\n"))) {
        char *value = strchr(line, ' ');
        if (!value || strncmp(line, "message", 7) == 0)
            continue;
        *value++ = 0;
        json_key(&j, line);
        if (*value && !value[strspn(value, "0123456789")] && strlen(value) < 19)
            json_u64(&j, strtoull(value, NULL, 10));
        else
            json_string(&j, value);
    }
    json_end_object(&j);
    puts(buf_str(&out));
}

enum { REDUCTIONS_MAX = 16 };

/* Prints "ring": the time that it covers, and how full it is. */
static void print_ring(const struct ring_status *ring)
{
    char from[32], to[32], size[24], used[24], rate[24];
    if (!ring->size)
        return;
    printf("%-16s %s to %s, %s in %s, %s/s\n", "ring", ring_time(from, ring->from_ms),
           ring_time(to, ring->to_ms), format_size(used, ring->used), format_size(size, ring->size),
           format_size(rate, ring->rate));
    if (ring->moved)
        printf("%-16s its file has been deleted or replaced; `jvmscope dump` can still read it\n",
               "");
}

static void print_cost(const struct ring_status *ring)
{
    char size[24], own[24], process[24];
    if (ring->process_ns)
        printf("%-16s %.2f %% of the CPU time of the process (%s of %s)\n", "cost",
               100 * (double)ring->own_ns / (double)ring->process_ns,
               format_duration(own, ring->own_ns), format_duration(process, ring->process_ns));
    if (ring->memory)
        printf("%-16s %s for tables, stacks and names%s\n", "memory",
               format_size(size, ring->memory), ring->size ? ", in addition to the ring" : "");
}

/* Returns a value of the answer's trigger `number`, or NULL. The caller frees it. */
static char *trigger_value(const char *answer, unsigned number, const char *key)
{
    char name[64];
    snprintf(name, sizeof(name), "trigger.%u.%s", number, key);
    return agent_answer_value(answer, name, 0);
}

static uint64_t trigger_number(const char *answer, unsigned number, const char *key)
{
    _cleanup_free_ char *text = trigger_value(answer, number, key);
    return text ? strtoull(text, NULL, 10) : 0;
}

static void print_value(const char *before, char *text)
{
    if (text) {
        fputs(before, stdout);
        print_text(stdout, (struct str){text, strlen(text)});
    }
    free(text);
}

/* Prints the lines "trigger", one per trigger. */
static void print_triggers(const char *answer)
{
    for (const char *at = answer; (at = strstr(at, "\ntrigger.")); at++) {
        char last[32], *end;
        unsigned n = (unsigned)strtoul(at + strlen("\ntrigger."), &end, 10);
        if (strncmp(end, ".condition ", 11) != 0)
            continue;
        uint64_t fired = trigger_number(answer, n, "fired"),
                 held_back = trigger_number(answer, n, "held_back"),
                 failed = trigger_number(answer, n, "failed"),
                 written = trigger_number(answer, n, "written");
        printf("%-16s ", "trigger");
        print_value("", trigger_value(answer, n, "condition"));
        print_value(" -> ", trigger_value(answer, n, "then"));
        if (fired)
            printf(": held %llu time%s, last %s", (unsigned long long)fired, fired == 1 ? "" : "s",
                   ring_time(last, trigger_number(answer, n, "last_ms")));
        else
            fputs(": has not held", stdout);
        if (fired)
            print_value(", ", trigger_value(answer, n, "measured"));
        print_value("; nothing has loaded the class ", trigger_value(answer, n, "not_loaded"));
        if (trigger_number(answer, n, "no_exception"))
            fputs("; the class is not an exception", stdout);
        if (held_back)
            printf("; %llu of them within a minute of another", (unsigned long long)held_back);
        if (written)
            printf("; wrote %llu file%s", (unsigned long long)written, written == 1 ? "" : "s");
        print_value(", last ", trigger_value(answer, n, "file"));
        if (trigger_number(answer, n, "file_removed"))
            fputs(" (removed)", stdout);
        if (failed)
            printf("; %llu failed", (unsigned long long)failed);
        print_value(", last ", trigger_value(answer, n, "error"));
        putchar('\n');
    }
}

/*
 * Adds to the agent's answer how many of the loaded classes came from the VM's archive of shared
 * classes (CDS, or an AOT cache), because captures that change classes at start-up make the VM load
 * those classes without the archive.
 */
static void add_archive(const struct vm *vm, struct buf *answer)
{
    _cleanup_free_ uint8_t *counters = NULL;
    int64_t shared, loaded;
    size_t len;
    if (vm_counters(vm, &counters, &len) < 0 ||
        hsperf_number(counters, len, "java.cls.sharedLoadedClasses", &shared) < 0 ||
        hsperf_number(counters, len, "java.cls.loadedClasses", &loaded) < 0)
        return;
    _cleanup_free_ char *arguments = hsperf_string(counters, len, "java.rt.vmArgs");
    if (shared > 0)
        buf_printf(answer, "archive in use: %lld of %lld classes came from it\n", (long long)shared,
                   (long long)(shared + loaded));
    else
        buf_printf(answer, "archive not in use: %s\n",
                   arguments && strstr(arguments, "-Xshare:off")
                       ? "the VM was started with -Xshare:off"
                       : "the VM found no archive of classes (CDS) that fits it");
}

/* Prints "budget": its size, how much of it was used, and what is reduced to stay below it. */
static void print_budget(const char *answer)
{
    _cleanup_free_ char *share = agent_answer_value(answer, "budget.share", 0);
    _cleanup_free_ char *used = agent_answer_value(answer, "budget.used", 0);
    if (!share || !used)
        return;
    printf("%-16s %g %% of the CPU time (an idle process counts as a tenth of a processor); "
           "%.2f %% in the last second",
           "budget", 100 * strtod(share, NULL), 100 * strtod(used, NULL));
    for (unsigned i = 1; i <= REDUCTIONS_MAX; i++) {
        char name[64], since[32];
        snprintf(name, sizeof(name), "budget.%u.what", i);
        _cleanup_free_ char *what = agent_answer_value(answer, name, 0);
        snprintf(name, sizeof(name), "budget.%u.one_of", i);
        _cleanup_free_ char *one_of = agent_answer_value(answer, name, 0);
        snprintf(name, sizeof(name), "budget.%u.since_ms", i);
        _cleanup_free_ char *at = agent_answer_value(answer, name, 0);
        if (what && one_of && at)
            printf("; one in %s %s since %s", one_of, what,
                   ring_time(since, strtoull(at, NULL, 10)));
    }
    putchar('\n');
}

/* Describes in words what a capture has counted. */
static const struct {
    const char *title;

    struct {
        const char *key, *what;
    } of[2];
} counted[] = {
    {"CPU time", {{"cpu.samples", "samples"}, {"cpu.threads", "threads"}}},
    {"method times", {{"times.methods", "methods"}}},
    {"allocations", {{"alloc.samples", "samples"}, {"alloc.sites", "sites"}}},
    {"requests", {{"requests.begun", "requests"}, {"requests.open", "open requests"}}},
    {"locks", {{"threads.holds", "holds"}, {"threads.deadlocks", "deadlocks"}}},
    {"monitors", {{"monitor.entered", "contentions"}, {"monitor.waited", "waits"}}},
    {"coverage", {{"cover.methods", "methods"}}},
    {"trace", {{"trace.calls", "calls"}, {"trace.methods", "methods"}}},
    {"log and watch", {{"log.written", "records"}, {"log.points", "places"}}},
    {"exceptions", {{"exceptions.rows", "places"}, {"exceptions.stacks", "stacks"}}},
    {"heap dumps", {{"heap.dumps", "dumps"}, {"heap.failed", "failures"}}},
    {"events", {{"events.written", "events"}}},
    {"control", {{"control.held_threads", "threads"}}},
    {"changed code", {{"instrument.classes", "classes"}, {"instrument.methods", "methods"}}},
};

static void print_counted(const char *answer)
{
    _cleanup_free_ char *estimated = agent_answer_value(answer, "requests.estimated", 0);
    for (size_t i = 0; i < ARRAY_SIZE(counted); i++) {
        const char *about = estimated && strcmp(counted[i].title, "requests") == 0 ? "about " : "";
        bool any = false;
        for (size_t k = 0; k < ARRAY_SIZE(counted[i].of) && counted[i].of[k].key; k++) {
            _cleanup_free_ char *text = agent_answer_value(answer, counted[i].of[k].key, 0);
            if (!text)
                break;
            uint64_t n = strtoull(text, NULL, 10);
            if (any)
                printf(", %s", COUNT_TEXT(n, counted[i].of[k].what));
            else
                printf("%-16s %s%s", counted[i].title, about, COUNT_TEXT(n, counted[i].of[k].what));
            any = true;
        }
        if (any)
            putchar('\n');
    }
}

/* Prints a line of the answer that needs no translation. */
static void print_line(const char *key, struct str value)
{
    static const char *const shown[] = {"agent",     "state",      "file",
                                        "options",   "changing",   "restoring",
                                        "last_file", "last_error", "archive"};
    char text[24];
    bool note = strcmp(key, "message") == 0, shown_as_is = note;
    for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
        shown_as_is = shown_as_is || strcmp(key, shown[i]) == 0;
    if (strcmp(key, "elapsed_ns") == 0) {
        printf("%-16s %s\n", "recording for",
               format_duration(text, strtoull(value.data, NULL, 10)));
    } else if (strncmp(key, "lost.", 5) == 0) {
        const char *capture = key + strlen("lost."), *what = strrchr(key, '.') + 1;
        printf("%-16s %.*s %s (%.*s)\n", "lost", (int)value.len, value.data, what,
               (int)strcspn(capture, "."), capture);
    } else if (shown_as_is) {
        _cleanup_free_ char *copy = note ? strndup(value.data, value.len) : NULL;
        _cleanup_(buf_release) struct buf readable = BUF(1 << 16);
        if (copy) {
            target_put_text(&readable, copy);
            value = (struct str){buf_str(&readable), readable.len};
        }
        printf("%-16s ", note ? "note" : key);
        print_text(stdout, value);
        putchar('\n');
    }
}

static int cmd_status(const struct command *self, int argc, char **argv)
{
    struct json_only options = {0};
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    _cleanup_(buf_release) struct buf answer = BUF(1 << 20);
    struct operands operands;
    int status;
    if (!target_begin(&vm, self, &options, argc, argv, &operands, &status))
        return status;
    status = target_query(&vm, self->name, "control=status", false, &answer);
    if (status)
        return status;
    target_report_left(&vm);
    add_archive(&vm, &answer);
    if (options.json) {
        print_status_json(buf_str(&answer));
        return 0;
    }
    const char *text = buf_str(&answer);
    struct ring_status ring;
    /* false if there is no ring; the cost is known all the same */
    (void)ring_status_read(text, &ring);
    print_ring(&ring);
    if (ring.size)
        print_cost(&ring);
    print_budget(text);
    print_triggers(text);
    /* Line 1 is the "ok", which target_message has checked. */
    for (const char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        size_t key = strcspn(line + 1, " \n"), all = strcspn(line + 1, "\n"),
               from = MIN(key + 1, all);
        _cleanup_free_ char *name = strndup(line + 1, key);
        if (name)
            print_line(name, (struct str){line + 1 + from, all - from});
    }
    print_counted(text);
    if (!ring.size)
        print_cost(&ring);
    puts("jvmscope status --json shows all counters");
    return 0;
}

const struct command command_status = {
    .name = "status",
    .run = cmd_status,
    .operands = "PID",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "show what the agent in a VM is doing",
    .related = "attach dump stop list",
    .description =
        "Use it to see whether a recording is in progress, and what it costs the program.\n\n"
        "Asks the agent what it records, since when, and what it has counted; all of its counters "
        "are in *--json*. While it starts or "
        "stops a recording, it says how many classes it has changed. For a recording that is "
        "always on, it shows the ring and the triggers: how often each one fired, what it "
        "measured last, and what it wrote.",
    .caveats =
        "It loads no agent: a VM without one has no answer. The agent measures the cost of its "
        "own work for a recording that is always on; what instrumented methods cost the program"
        " otherwise, for example because they are compiled again, is not part of it.",
    .examples = "  jvmscope status 4711\n",
    .sets = json_only_sets,
};
