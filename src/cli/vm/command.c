/* SPDX-License-Identifier: Apache-2.0 */
/* jvmscope vm: the VM's own activity. */
#include "cli/commands.h"

#include "cli/losses.h"
#include "cli/selected.h"
#include "cli/threads/threads.h"
#include "cli/vm/vm.h"

#include <inttypes.h>
#include <string.h>

struct vm_options {
    bool json;
    uint64_t from_ns, to_ns, limit;
};

#define OPTION(field) offsetof(struct vm_options, field)

/* clang-format off */
static const struct arg vm_args[] = {
    {"--json", 0, ARG_FLAG, OPTION(json), NULL, "print JSON"},
    {"--from", 0, ARG_DURATION, OPTION(from_ns), "TIME", "only what began from this time on, counted from the start: 1.5s, 2m"},
    {"--to", 0, ARG_SPAN, OPTION(to_ns), "TIME", "only what began before this time"},
    {"--limit", 'n', ARG_COUNT, OPTION(limit), "N", "rows of each table but memory and process (10; JSON: all)"},
    {0}};
/* clang-format on */

static const struct arg_set vm_set = {"What is shown", vm_args};
static const struct arg_set *const vm_sets[] = {&vm_set, NULL};

static int print_view_json(struct vm_view *w)
{
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 2);
    struct json j = {.out = &b};
    json_begin_object(&j);
    vm_view_json(w, &j);
    losses_json_of_file(w->path, losses_of_vm, true, &j);
    json_end_object(&j);
    return threads_json_print(&b);
}

static void set_window(struct vm_view *w, const struct vm_options *o)
{
    uint64_t end = (uint64_t)MAX(w->v.end_ns - w->v.start_ns, INT64_C(0));
    uint64_t to = o->to_ns ? MIN(o->to_ns, end) : end;
    w->filtered = o->from_ns || o->to_ns;
    w->window_ns = to > o->from_ns ? to - o->from_ns : 0;
}

static int cmd_vm(const struct command *self, int argc, char **argv)
{
    struct vm_options o = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &o}), argc, argv, &operands, &status))
        return status;
    _cleanup_(buf_release) struct buf why = BUF(4096);
    struct vm_view w = {.path = operands.list[0],
                        .limit = o.limit  ? o.limit
                                 : o.json ? SIZE_MAX
                                          : 10};
    const struct vm_activity_filter filter = {o.from_ns, o.to_ns};
    int e = vm_activity_load(&w.v, w.path, &filter, &why);
    if (e < 0)
        return why.len ? complain(w.path, "cannot read", buf_str(&why))
                       : complain_errno(w.path, "cannot read", e);
    set_window(&w, &o);
    status = selected_by_time(w.path, o.from_ns, o.to_ns,
                              (uint64_t)MAX(w.v.end_ns - w.v.start_ns, INT64_C(0)));
    if (status) {
        vm_view_release(&w);
        return status;
    }
    if (!vm_activity_any(&w.v)) {
        status =
            w.filtered
                ? complain(w.path, "holds nothing about the VM's activity in that time", NULL)
                : complain(w.path, "holds nothing about the VM's activity", "record with --events");
    } else if ((e = vm_view_fill(&w)) < 0) {
        status = complain_errno(w.path, "cannot show", e);
    } else if (o.json) {
        status = print_view_json(&w);
    } else {
        vm_view_text(&w);
        status = 0;
    }
    char where[64];
    snprintf(where, sizeof(where), "damaged (at byte %" PRIu64 ")", w.v.cut_at);
    losses_report_read(w.path, losses_of_vm, true, w.v.cut_at ? where : NULL);
    vm_view_release(&w);
    return status;
}

const struct command command_vm = {
    .name = "vm",
    .run = cmd_vm,
    .operands = "FILE",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "show the VM's own activity: collections, safepoints, compilations, memory",
    .related = "run attach threads report",
    .description =
        "Use it when a program is slow and its own methods do not explain why.\n\n"
        "Reads a recording made with *--events*, one that is always on, or one made by the "
        "JDK's Flight Recorder. Prints the collections by collector and cause, with their "
        "pauses and what they freed; the safepoints by operation, with the time that threads "
        "took to reach them; for slow ones the thread that was late, and its method; "
        "compilations, and deoptimizations by method and reason; the CPU time, memory, threads,"
        " files and classes of the process; and how often its container reached its limits.",
    .caveats =
        "On JDK 8 the VM names no operations except collections, and for safepoints that follow"
        " each other within a tenth of a second only the number and the total time are known. "
        "Late threads are found by the samples of *--cpu*.",
    .examples = "  jvmscope run --events --cpu -o app.jfr -- java -jar app.jar\n"
                "  jvmscope vm app.jfr\n"
                "  jvmscope vm --from 10s --to 20s --json app.jfr\n",
    .sets = vm_sets,
};
