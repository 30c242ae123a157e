/* SPDX-License-Identifier: Apache-2.0 */
/* status, dump, stop: messages to the agent of a VM that is being recorded. */
#include "base/json.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/contents.h"
#include "cli/convert.h"
#include "cli/recording.h"
#include "cli/report.h"
#include "cli/ring.h"
#include "cli/target.h"
#include "hotspot/hsperf.h"
#include "jfr/cut.h"
#include "proto/vm_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct control {
    bool json;
    const char *output;
    uint64_t last_ns; /* 0: all */
};

static const struct arg status_args[] = {
    {"--json", 0, ARG_FLAG, offsetof(struct control, json), NULL, "print JSON"},
    {0},
};

static const struct arg stop_args[] = {
    {"--output", 'o', ARG_TEXT, offsetof(struct control, output), "FILE",
     "write the recording there; its extension picks the format"},
    {0},
};

static const struct arg dump_args[] = {
    {"--output", 'o', ARG_TEXT, offsetof(struct control, output), "FILE",
     "write the recording there; its extension picks the format"},
    {"--last", 0, ARG_SPAN, offsetof(struct control, last_ns), "TIME",
     "only the last part of a recording that is always on, such as 30s or 5m"},
    {0},
};

static const struct arg_set status_set = {"What is shown", status_args},
                            stop_set = {"Output", stop_args}, dump_set = {"Output", dump_args};
static const struct arg_set *const status_sets[] = {&status_set, NULL},
                                   *const stop_sets[] = {&stop_set, NULL},
                                   *const dump_sets[] = {&dump_set, NULL};

/* Sends a message to the VM that the operand names, and returns its answer. */
static int send_verb(const struct command *self, const char *operand, const char *verb,
                     struct vm *vm, struct buf *answer)
{
    int status = target_open(vm, operand);
    return status ? status : target_query(vm, self->name, verb, false, answer);
}

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

/* Prints the members "ring", "cost" and "memory" for people. */
static void print_ring(const char *answer)
{
    struct ring_status ring;
    if (!ring_status_read(answer, &ring))
        return;
    char from[32], to[32], size[24], used[24], rate[24];
    printf("%-16s %s to %s, %s in %s, %s/s\n", "ring", ring_time(from, ring.from_ms),
           ring_time(to, ring.to_ms), format_size(used, ring.used), format_size(size, ring.size),
           format_size(rate, ring.rate));
    if (ring.moved)
        printf("%-16s its file has been deleted or replaced; `jvmscope dump` still reads it\n", "");
    if (ring.process_ns)
        printf("%-16s %.2f %% of the CPU time of the process\n", "cost",
               100 * (double)ring.own_ns / (double)ring.process_ns);
    printf("%-16s %s for tables, stacks and names, in addition to the ring\n", "memory",
           format_size(size, ring.memory));
}

/* A value of the answer's trigger `number`; NULL: there is none. The caller frees it. */
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

/* "trigger", a line for each. */
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
            fputs("; the class is no exception", stdout);
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
                       : "the VM has none that it can use");
}

/* Prints "budget": its size, how much of it was used, and what is reduced to stay below it. */
static void print_budget(const char *answer)
{
    _cleanup_free_ char *share = agent_answer_value(answer, "budget.share", 0);
    _cleanup_free_ char *used = agent_answer_value(answer, "budget.used", 0);
    if (!share || !used)
        return;
    printf("%-16s %g %% of the CPU time; %.2f %% in the last second", "budget",
           100 * strtod(share, NULL), 100 * strtod(used, NULL));
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

static int cmd_status(const struct command *self, int argc, char **argv)
{
    struct control options = {0};
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    _cleanup_(buf_release) struct buf answer = BUF(1 << 20);
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &options}), argc, argv, &operands, &status))
        return status;
    status = send_verb(self, operands.list[0], "control=status", &vm, &answer);
    if (status)
        return status;
    add_archive(&vm, &answer);
    if (options.json) {
        print_status_json(buf_str(&answer));
        return 0;
    }
    print_ring(buf_str(&answer));
    print_budget(buf_str(&answer));
    print_triggers(buf_str(&answer));
    /* Line 1 is the "ok" that target_message has checked. */
    const char *line = strchr(buf_str(&answer), '\n');
    for (; line && line[1]; line = strchr(line + 1, '\n')) {
        size_t key = strcspn(line + 1, " \n"), all = strcspn(line + 1, "\n");
        if (strncmp(line + 1, "messages_told ", 14) == 0 || strncmp(line + 1, "trigger.", 8) == 0 ||
            strncmp(line + 1, "budget.", 7) == 0)
            continue;
        bool note = strncmp(line + 1, "message ", 8) == 0;
        printf("%-16.*s ", note ? 4 : (int)key, note ? "note" : line + 1);
        struct str value = {line + 1 + MIN(key + 1, all), all - MIN(key + 1, all)};
        _cleanup_free_ char *text = note ? strndup(value.data, value.len) : NULL;
        _cleanup_(buf_release) struct buf said = BUF(1 << 16);
        if (text)
            target_put_said(&said, text);
        print_text(stdout, text ? (struct str){buf_str(&said), strlen(buf_str(&said))} : value);
        putchar('\n');
    }
    return 0;
}

/*
 * Copies a recording that is still being written, up to its last complete event, or converts such a
 * copy.
 */
static int copy_so_far(int fd, const char *to)
{
    char copy[PATH_MAX];
    bool direct = recording_is_direct(to);
    int n = snprintf(copy, sizeof(copy), direct ? "%s" : "%s.%d.jfr", to, (int)getpid());
    int status =
        n < PATH_MAX ? target_copy(fd, copy) : complain_errno(to, "cannot write", -ENAMETOOLONG);
    if (status)
        return status;
    _cleanup_close_ int written = open(copy, O_RDWR | O_CLOEXEC);
    int r = written < 0 ? -errno : jfr_cut_copy(written);
    if (r < 0)
        status = complain_errno(copy, "cannot cut it to its size", r);
    if (!direct) {
        complain_as(copy, to);
        status = status ? status : convert_file(&(struct selection){0}, copy, to);
        complain_as(NULL, NULL);
        unlink(copy);
    }
    return status;
}

/* fd: what the VM wrote at `file`, opened. */
static int write_output(const struct vm *vm, const char *file, int fd, const char *to, bool ends)
{
    if (!ends && target_is_file(fd, to)) {
        recording_announce_open(fd, file, "", ends);
        return 0;
    }
    int status = ends ? target_fetch(vm, file, fd, to, target_chose(file)) : copy_so_far(fd, to);
    if (status == 0)
        recording_announce(NULL, to);
    return status;
}

/* Returns the output of the recording that an answer is about, or NULL if there is none. */
static char *output_of(const struct buf *answer, bool ends)
{
    char *file = agent_answer_value(buf_str(answer), "file", 0);
    return file || !ends ? file : agent_answer_value(buf_str(answer), "last_file", 0);
}

/*
 * dump and stop: says where the file is, or copies it to where it was asked for. A recording that
 * the agent could not complete is fetched as far as it goes, and the status says so.
 */
static int send_and_fetch(const struct command *self, const char *operand,
                          const struct control *options, const char *verb, bool ends)
{
    struct timespec began;
    bool vm_ended = false;
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    _cleanup_(buf_release) struct buf before = BUF(1 << 20), answer = BUF(1 << 20),
                                      ignored = BUF(4096);
    clock_gettime(CLOCK_REALTIME_COARSE, &began);
    /*
     * An agent that has stopped no longer knows the file, unless the recording's own duration ended
     * it.
     * What a fast program does while it is asked does not belong to the recording.
     */
    const char *first = ends && !options->last_ns ? "control=ending" : "control=status";
    int status = send_verb(self, operand, first, &vm, &before);
    if (status)
        return status;
    if (ends)
        target_print_messages(&before); /* they belong to the recording */
    _cleanup_free_ char *file = output_of(&before, ends);
    _cleanup_free_ char *state = agent_answer_value(buf_str(&before), "state", 0);
    bool recorded = state && strcmp(state, "idle") != 0;
    struct ring_status ring;
    if (ring_status_read(buf_str(&before), &ring))
        return ring_send(self, &vm, verb, &ring, file, options->output, options->last_ns, ends);
    /* The agent says what has ended a recording that was always on. */
    _cleanup_free_ char *failed = agent_answer_value(buf_str(&before), "last_error", 0);
    if (options->last_ns && !failed)
        return complain(self->name, "--last is for a recording that is always on",
                        "begin one with: jvmscope attach --always PID");
    /* Kept open, because a VM that ends takes its mounts with it. */
    _cleanup_close_ int fd = file ? vm_open_written(&vm, file, &ignored) : -1;
    status = target_ask_last(&vm, self->name, verb, false, &answer, ends ? &vm_ended : NULL);
    if (vm_ended)
        complain("note", ENDED_MEANWHILE, NULL);
    else if (status == 0)
        target_print_messages(&answer);
    if (!file || (status && !recorded))
        return status;
    if (fd < 0 || !vm_file_is_output(fd)) {
        close_descriptor(&fd);
        int opened = target_open_written(&vm, file, &fd);
        if (opened)
            return status ? status : opened;
    }
    bool ours = target_is_file(fd, file); /* a VM that has ended no longer sees anything */
    if (options->output) {
        int written = write_output(&vm, file, fd, options->output, ends);
        status = status ? status : written;
    } else {
        recording_announce_open(fd, file, ours ? "" : AS_THE_VM_SEES_IT, ends);
    }
    if (status == 0 && ours)
        recording_announce_dumps(file, &began);
    const char *readable = ours ? file : options->output;
    if (!ends && status == 0 && readable && contents_requested(readable, OPT_JFR))
        complain("note", "the VM's own events (--jfr) follow when the recording ends", NULL);
    if (!ends && status == 0)
        fprintf(stderr, "jvmscope: %d: the recording goes on\n", vm.pid);
    return status;
}

static int cmd_dump(const struct command *self, int argc, char **argv)
{
    struct control options = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &options}), argc, argv, &operands, &status))
        return status;
    const char *operand = operands.list[0];
    if (operand[strspn(operand, "0123456789")])
        return ring_dump_file(operand, options.output, options.last_ns);
    return send_and_fetch(self, operand, &options, "control=dump", false);
}

static int cmd_stop(const struct command *self, int argc, char **argv)
{
    struct control options = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &options}), argc, argv, &operands, &status))
        return status;
    return send_and_fetch(self, operands.list[0], &options, "control=stop", true);
}

const struct command command_status = {
    .name = "status",
    .run = cmd_status,
    .operands = "PID",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "show what the agent in a VM does",
    .related = "attach dump stop list",
    .description =
        "Use it to see whether a recording is in progress, and what it costs the program.\n\n"
        "Asks the agent what it records, since when, and what it has counted. While it starts or "
        "stops a recording, it says how many classes it has changed. For a recording that is "
        "always on, it shows the ring and the triggers: how often each one fired, what it "
        "measured last, and what it wrote.",
    .examples = "  jvmscope status 4711\n",
    .sets = status_sets,
};

const struct command command_dump = {
    .name = "dump",
    .run = cmd_dump,
    .operands = "PID|RING",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "write out what was recorded so far; the recording goes on",
    .related = "attach status stop report",
    .description =
        "Use it to look at a recording without ending it.\n\n"
        "Makes the agent write out what it has recorded so far, and prints where, how much, and "
        "what was lost. *-o* makes a complete copy of the recording up to now.\n\n"
        "For a recording that is always on (*--always*), *--last* takes exactly the events that "
        "ended in that time. Its ring is a file, which can be read in the same way after the VM "
        "has ended, even after a crash.",
    .examples = "  jvmscope dump -o so-far.html 4711\n"
                "  jvmscope dump --last 5m -o spike.jfr 4711           the last five minutes\n"
                "  jvmscope dump --last 5m -o crash.jfr "
                "/var/tmp/jvmscope-4711-20261124-070000.ring\n",
    .sets = dump_sets,
};

const struct command command_stop = {
    .name = "stop",
    .run = cmd_stop,
    .operands = "PID",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "end a recording",
    .related = "attach status dump report",
    .description =
        "Use it to end a recording that has no time limit, or before its time is over.\n\n"
        "Ends the recording that *jvmscope attach* or *jvmscope run* began, and writes it out. A "
        "recording whose time is over is fetched as well, with *-o*.",
    .examples = "  jvmscope stop 4711\n"
                "  jvmscope stop -o app.html 4711\n",
    .sets = stop_sets,
};
