/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/threads/threads.h"

#include "analysis/what_if.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/pattern.h"
#include "cli/commands.h"
#include "cli/losses.h"
#include "cli/selected.h"
#include "cli/threads/deadlocks_vm.h"
#include "timeline/index.h"
#include "timeline/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPTION(field) offsetof(struct thread_options, field)

/* clang-format off */
#define JSON   {"--json", 0, ARG_FLAG, OPTION(json), NULL, "print JSON"}
#define THREAD {"--thread", 0, ARG_LIST, OPTION(thread), "PATTERN", "only threads whose name matches (a part of it, * and ?, or =NAME)"}
#define CLASS  {"--class", 0, ARG_LIST, OPTION(class_name), "PATTERN", "only waits for objects of a class that matches"}, \
               {"--lock", 0, ARG_LIST, OPTION(lock), "PATTERN", "the same as --class"}
#define FROM   {"--from", 0, ARG_DURATION, OPTION(from_ns), "TIME", "only from this time on, counted from the start: 1.5s, 2m"}, \
               {"--to", 0, ARG_SPAN, OPTION(to_ns), "TIME", "only up to this time"}
#define MIN_   {"--min", 0, ARG_SPAN, OPTION(min_ns), "TIME", "only waits that are at least this long"}
#define END    {"--end", 0, ARG_TEXT, OPTION(end_thread), "PATTERN", "follow the path back from the end of this thread"}
#define TO_THREAD {"--thread", 0, ARG_LIST, OPTION(thread), "PATTERN", "the same as --end"}
#define IDLE   {"--idle", 0, ARG_FLAG, OPTION(idle), NULL, "include idle threads, such as pool threads without a task and timers"}
#define REQUESTS ONLY_REQUESTS_ARGS(struct thread_options, requests)
#define LIMIT(what) {"--limit", 'n', ARG_COUNT, OPTION(limit), "N", what}
/* clang-format on */

static const struct arg table_args[] = {
    JSON, THREAD, CLASS, FROM, MIN_, REQUESTS, IDLE, LIMIT("rows of a table (20); JSON has all"),
    {0}};
static const struct arg timeline_args[] = {
    JSON, THREAD, CLASS, FROM, MIN_, REQUESTS, LIMIT("events to print (all); JSON always has all"),
    {0}};
static const struct arg path_args[] = {
    JSON, END, TO_THREAD, FROM, IDLE, LIMIT("rows of a table (20); JSON has all"), {0}};
static const struct arg what_if_args[] = {
    JSON,
    {"--lock", 0, ARG_LIST, OPTION(lock), "PATTERN", "the locks whose sections change"},
    {"--method", 0, ARG_LIST, OPTION(method), "PATTERN", "the methods that change"},
    {"--factor", 0, ARG_TEXT, OPTION(factor), "F",
     "the factor; 0.5 halves the sections (0.75, 0.5 and 0)"},
    END,
    TO_THREAD,
    FROM,
    LIMIT("without --lock and --method: how many locks of the path to try (5), in JSON too"),
    {0},
};
static const struct arg deadlock_args[] = {JSON, {0}};

#define SETS(verb)                                                           \
    static const struct arg_set verb##_set = {"What is shown", verb##_args}; \
    static const struct arg_set *const verb##_sets[] = {&verb##_set, NULL};
SETS(table)
SETS(timeline)
SETS(path)
SETS(what_if)
SETS(deadlock)
#undef SETS

static struct str name_of_thread(const void *context, size_t i)
{
    const char *name = tl_thread_name(context, (uint32_t)i);
    return (struct str){name, strlen(name)};
}

static struct str class_of_object(const void *context, size_t i)
{
    const char *name = tl_object_class(context, (uint32_t)i);
    return (struct str){name, strlen(name)};
}

size_t thread_view_limit(const struct thread_view *v)
{
    return v->options->limit ? v->options->limit : 20;
}

/* Returns whether a thread, which may be TL_NONE, has just this name, which may be NULL. */
static bool is_named(const struct thread_view *v, const char *name, uint32_t thread)
{
    return name && thread != TL_NONE && strcmp(tl_thread_name(v->t, thread), name) == 0;
}

/*
 * Makes a thread the one at whose end the path ends, if none is chosen yet or it comes before that
 * one: one that has just the name `wanted`, then the one that ended last.
 */
static void take_end(struct thread_view *v, const char *wanted, uint32_t thread)
{
    const struct tl_thread *threads = v->t->threads;
    uint32_t end = v->range.end_thread;
    bool is = is_named(v, wanted, thread), was = is_named(v, wanted, end);
    bool better = end == TL_NONE;
    if (!better)
        better = is != was ? is : threads[thread].end_ns >= threads[end].end_ns;
    if (threads[thread].first != TL_NONE && better)
        v->range.end_thread = thread;
}

/* whole_ns: the length of the recording */
static int select_all(struct thread_view *v, uint64_t whole_ns)
{
    const struct timeline *t = v->t;
    const char *class_name = v->options->lock ? v->options->lock : v->options->class_name;
    v->threads = calloc(t->n_threads + 1, 1);
    v->objects = class_name ? calloc(t->n_objects + 1, 1) : NULL;
    if (!v->threads || (class_name && !v->objects))
        return complain_errno(v->path, "cannot read", -ENOMEM);
    for (size_t i = 0; i < t->n_threads; i++) {
        const char *name = tl_thread_name(t, (uint32_t)i);
        v->threads[i] = pattern_match(v->options->thread, name, strlen(name));
        const char *end = v->options->end_thread;
        if (end && pattern_match(end, name, strlen(name)))
            take_end(v, end, (uint32_t)i);
    }
    for (size_t i = 0; v->objects && i < t->n_objects; i++) {
        const char *name = tl_object_class(t, (uint32_t)i);
        v->objects[i] = pattern_match(class_name, name, strlen(name));
    }
    if (selected_by_time(v->path, v->options->from_ns, v->options->to_ns, whole_ns))
        return 1;
    if (v->separate && !t->n_nodes)
        return thread_view_no_path(v, "no critical path", -ENOENT);
    if (v->options->end_thread && v->range.end_thread == TL_NONE)
        return complain(v->path,
                        v->separate ? "no thread between --from and --to has this name"
                                    : "no thread has this name",
                        v->options->end_thread);
    if (selected_by_name(v->path,
                         v->separate ? "no thread's name between --from and --to matches"
                                     : "no thread's name matches",
                         v->options->thread, name_of_thread, t, t->n_threads))
        return 1;
    return selected_by_name(v->path,
                            v->separate ? "no lock between --from and --to has a class that matches"
                                        : "no lock's class matches",
                            class_name, class_of_object, t, t->n_objects);
}

/* Loads only the index, whose tables are checked. The verb checks the nodes that it uses. */
static struct timeline *load_unchecked(const char *path, const struct path_options *range,
                                       thread_checks *checks)
{
    _cleanup_(timeline_freep) struct timeline *t = NULL;
    if (timeline_load_unchecked(&t, path) < 0 || !checks(t, range) || timeline_check_tables(t) < 0)
        return NULL;
    return TAKE(t);
}

void thread_view_release(struct thread_view *v)
{
    timeline_free(v->t);
    free(v->threads);
    free(v->objects);
}

int thread_view_part(const struct thread_view *v, struct thread_view *ret, uint64_t *ret_whole_ns,
                     struct buf *why)
{
    const struct thread_options *o = v->options;
    struct thread_view part = {.options = o,
                               .path = v->path,
                               .separate = true,
                               .base_ns = o->from_ns,
                               .range = PATH_OPTIONS};
    int r = timeline_read_part(&part.t, v->path, TIMELINE_STREAMED_BYTES, o->from_ns, o->to_ns,
                               ret_whole_ns, why);
    if (r == 0)
        *ret = part;
    return r;
}

/*
 * Opens what the operand names. by_path: the verb follows the critical path; checks: NULL if it
 * never checks nodes itself. Returns 0, or the exit status after a complaint.
 */
static int view_open(struct thread_view *ret, const struct thread_options *o, const char *path,
                     bool by_path, thread_checks *checks)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    struct thread_view v = {.options = o, .path = path, .range = PATH_OPTIONS};
    uint64_t whole_ns = 0;
    int r = -ENOEXEC;
    if (by_path && (o->from_ns || o->to_ns))
        r = thread_view_part(&v, &v, &whole_ns, &why);
    if (r == -ENOEXEC) {
        v.range.from = o->from_ns;
        v.range.to = o->to_ns;
        if (checks && !o->end_thread && !o->thread)
            v.t = load_unchecked(path, &v.range, checks);
        v.unchecked = v.t != NULL;
        r = v.t ? 0 : timeline_load(&v.t, path, &why);
        whole_ns = r == 0 ? v.t->end_ns : 0;
    }
    if (r < 0)
        return why.len ? complain(path, "cannot read", buf_str(&why))
                       : complain_errno(path, "cannot read", r);
    if (by_path && v.t->part_of) {
        r = thread_view_no_path(&v, "cannot follow who waited for whom", -ENODATA);
        thread_view_release(&v);
        return r;
    }
    if (!v.t->n_nodes) /* perhaps because it was cut */
        losses_report_known(path, losses_of_threads, true);
    int status = v.t->n_nodes || (v.separate && v.t->n_threads)
                     ? select_all(&v, whole_ns)
                     : complain(path, "holds nothing about threads", "record with --threads");
    if (status)
        thread_view_release(&v);
    else
        *ret = v;
    return status;
}

void thread_view_select_end(struct thread_view *v)
{
    for (size_t i = 0; i < v->t->n_threads; i++)
        if (v->threads[i])
            take_end(v, v->options->thread, (uint32_t)i);
}

const char *thread_view_end(const struct thread_view *v)
{
    bool chosen = v->options->end_thread || v->options->thread;
    return chosen && v->range.end_thread != TL_NONE ? tl_thread_name(v->t, v->range.end_thread)
                                                    : NULL;
}

int thread_view_no_wait(const struct thread_view *v)
{
    const struct thread_options *o = v->options;
    const char *given[] = {o->times ? only_requests_option(&o->requests) : NULL,
                           o->thread ? "--thread" : NULL,
                           o->lock         ? "--lock"
                           : o->class_name ? "--class"
                                           : NULL,
                           o->min_ns ? "--min" : NULL,
                           o->from_ns ? "--from" : NULL,
                           o->to_ns ? "--to" : NULL};
    return complain_of_options(v->path, "no wait is selected by", given, ARRAY_SIZE(given));
}

void thread_view_print_shorter(const struct thread_view *v, uint64_t shorter)
{
    if (v->options->min_ns)
        print_shorter(shorter, "waits", v->options->min_ns);
}

/* What a part of a recording lacks. */
static const char *part_lacks(const struct timeline *t)
{
    return t->part_of & TL_PART_OF_CLASSES
               ? "this part of a recording has only the events of some classes (--class)"
               : "what other threads did is not in this part of a recording (--thread)";
}

void threads_json_part(struct json *j, const struct timeline *t)
{
    json_key_string(j, "part_of",
                    t->part_of & TL_PART_OF_CLASSES   ? "classes"
                    : t->part_of & TL_PART_OF_THREADS ? "threads"
                                                      : NULL);
}

void thread_view_print_unended(const struct thread_view *v, const struct critical_path *p)
{
    const struct path_segment *last =
        p->segments.len ? &p->segments.data[p->segments.len - 1] : NULL;
    if (!last || (last->state != PATH_LOCK && last->state != PATH_REACQUIRE))
        return;
    const struct timeline *t = v->t;
    uint32_t n = t->threads[last->thread].last;
    bool dead = n != TL_NONE && tl_node(t, n).kind == TL_DEADLOCK;
    printf(" the path ends with a wait of %s for a lock, which had not ended%s\n",
           tl_thread_name(t, last->thread),
           dead ? ": a deadlock (jvmscope threads deadlocks)" : "");
}

int thread_view_no_path(const struct thread_view *v, const char *what, int r)
{
    if (r == -ENODATA)
        return complain(v->path, what, part_lacks(v->t));
    return r == -ENOENT ? complain(v->path, what, "nothing lies between --from and --to")
                        : complain_errno(v->path, what, r);
}

void threads_json_frames(struct json *j, const struct timeline *t, uint32_t stack)
{
    threads_json_some_frames(j, t, stack == TL_NONE ? 0 : t->stacks[stack].first,
                             stack == TL_NONE ? 0 : t->stacks[stack].len);
}

void threads_json_some_frames(struct json *j, const struct timeline *t, uint32_t first, uint32_t n)
{
    json_begin_array(j);
    for (uint32_t k = 0; k < n; k++) {
        const struct tl_frame *f = &t->frames[first + k];
        char text[1200];
        if (f->line)
            snprintf(text, sizeof(text), "%s:%u", tl_string(t, f->method), f->line);
        else
            snprintf(text, sizeof(text), "%s", tl_string(t, f->method));
        json_string(j, text);
    }
    json_end_array(j);
}

void threads_json_thread(struct json *j, const struct timeline *t, uint32_t thread)
{
    json_string(j, thread == TL_NONE ? NULL : tl_thread_name(t, thread));
}

static int print(struct buf *b)
{
    int r = buf_error(b);
    if (r == 0)
        r = file_write_all(STDOUT_FILENO, b->data, b->len);
    b->len = 0;
    return r;
}

int thread_view_unknown_owners(const struct thread_view *v, struct unknown_table *ret)
{
    int r = unknown_owners_find(v->t, v->range.from, v->range.to, ret);
    return r < 0 ? complain_errno(v->path, "cannot analyse", r) : 0;
}

bool thread_view_is_unknown(const struct thread_view *v, const struct tl_unowned *row)
{
    return row && row->lock && unknown_owners_matter(v->t, row->ns);
}

void thread_view_print_unknown(const struct thread_view *v, const struct unknown_table *u)
{
    char d[24];
    for (size_t i = 0; i < u->rows.len; i++) {
        const struct tl_unowned *row = &u->rows.data[i];
        if (thread_view_is_unknown(v, row))
            printf(" %s: who held it is unknown for %" PRIu64 " of %" PRIu64 " waits, %s in all, "
                   "so that its share of the path and its gain may be too small\n",
                   tl_string(v->t, row->class), row->unknown, row->waits,
                   format_duration(d, row->ns));
    }
}

void threads_json_unknown_owners(struct json *j, const struct tl_unowned *row)
{
    bool lock = row && row->lock;
    json_key_u64(j, "owner_unknown", lock ? row->unknown : 0);
    json_key_u64(j, "owner_unknown_ns", lock ? row->ns : 0);
}

int threads_json_print(struct buf *b)
{
    buf_u8(b, '\n');
    int r = print(b);
    return r < 0 ? complain_errno(NULL, "cannot write", r) : 0;
}

int threads_json_print_part(struct buf *b)
{
    return b->len < 1 << 20 ? 0 : print(b);
}

/* ---- the verbs ---- */

static bool what_if_checks_nodes(const struct timeline *t, const struct path_options *range)
{
    return what_if_checks(t);
}

static int show_file(const char *path, const struct thread_options *options,
                     int (*show)(struct thread_view *), thread_checks *checks)
{
    struct thread_view v;
    int status = -EPROTO;
    uint64_t cut_at = 0;
    bool lost = false, by_path = checks != NULL;
    /* If an index turns out to be damaged, it is checked completely and made again. */
    for (; status == -EPROTO; checks = NULL) {
        if ((status = view_open(&v, options, path, by_path, checks)))
            return status;
        status = show(&v);
        if (status == 0 && v.t->part_of)
            complain(path, "a part", part_lacks(v.t));
        cut_at = v.t->cut_at;
        lost = v.t->lost_any;
        thread_view_release(&v);
    }
    char where[64];
    snprintf(where, sizeof(where), "damaged (at byte %" PRIu64 ")", cut_at);
    if (status == 0)
        losses_report_read(path, losses_of_threads, lost, cut_at ? where : NULL);
    else if (cut_at)
        complain(path, "only part of it could be read", where);
    return status;
}

static int run_verb(const struct command *self, int argc, char **argv,
                    int (*show)(struct thread_view *), thread_checks *checks)
{
    struct thread_options options = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &options}), argc, argv, &operands, &status))
        return status;
    const char *twice = options.lock && options.class_name     ? "--class or --lock, not both"
                        : options.end_thread && options.thread ? "--end or --thread, not both"
                                                               : NULL;
    if (twice) {
        complain(self->name, twice, NULL);
        return 2;
    }
    _cleanup_(request_times_release) struct request_times times = {0};
    status = 0;
    if (only_requests_given(&options.requests)) {
        status = only_requests_times(&options.requests, operands.list[0], &times);
        /* cppcheck-suppress autoVariables ; it is used only until this returns */
        options.times = &times;
    }
    return status ? status : show_file(operands.list[0], &options, show, checks);
}

#define VERB(verb, show, checks)                                             \
    static int cmd_##verb(const struct command *self, int argc, char **argv) \
    {                                                                        \
        return run_verb(self, argc, argv, show, checks);                     \
    }
VERB(summary, threads_summary, NULL)
VERB(monitors, threads_monitors, NULL)
VERB(timeline, threads_timeline, NULL)
VERB(path, threads_path, path_shares_known)
VERB(what_if, threads_what_if, what_if_checks_nodes)
#undef VERB

/* Answers for a recording or for a running VM. */
static int cmd_deadlocks(const struct command *self, int argc, char **argv)
{
    struct thread_options options = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &options}), argc, argv, &operands, &status))
        return status;
    const char *operand = operands.list[0];
    bool is_pid = operand[strspn(operand, "0123456789")] == 0 && access(operand, F_OK) != 0;
    return is_pid ? deadlocks_of_vm(operand, options.json)
                  : show_file(operand, &options, threads_deadlocks, NULL);
}

#define ROW(word, options, function, line, more, example) \
    ROW_OF("FILE", word, options, function, line, more, example)
#define ROW_OF(what, word, options, function, line, more, example)                     \
    &(const struct command)                                                            \
    {                                                                                  \
        .name = "threads " word, .run = function, .operands = what, .min_operands = 1, \
        .max_operands = 1, .summary = line, .description = more, .examples = example,  \
        .sets = options                                                                \
    }

static const struct command *const threads_verbs[] = {
    ROW("summary", table_sets, cmd_summary, "show how long each thread was blocked and waited",
        "Prints a row for each thread, the one that was blocked longest first: how often and for "
        "how long it was blocked and waited, and how many of its waits have a known cause. A "
        "virtual "
        "thread that was ready to run and had no carrier did not wait then; if there are such "
        "times, they are a column of their own. Threads "
        "that only waited for something to do (pools without a task, timers, selectors), the VM's "
        "own threads, and such waits of other threads are left out. The last lines give their "
        "number and time, and *--idle* shows them.",
        "  jvmscope threads summary app.jfr\n"),
    ROW("monitors", table_sets, cmd_monitors,
        "show monitor statistics: classes, then blocks and waits by calling method",
        "Prints monitor statistics of the selected threads. The first table lists the classes of "
        "the objects for which they waited, with each class's share of the critical path and what "
        "the program would gain if its sections were halved. The others list blocks and waits by "
        "calling method, with total, least, most, average and percentile, and the number of "
        "objects and threads.",
        "  jvmscope threads monitors --thread 'worker-*' app.jfr\n"),
    ROW("timeline", timeline_sets, cmd_timeline, "list the events of the threads in order of time",
        "Prints every change of state and every interaction with its attributes. *--min* keeps "
        "only the waits that are at least so long, and their ends. *--json* uses the names of the "
        "TRCThread model.",
        "  jvmscope threads timeline --from 1s --to 1.1s app.jfr\n"),
    ROW("critical-path", path_sets, cmd_path,
        "find the chain of activities that the total time depends on",
        "Follows the path backward from the end of the program, from *--to*, or from the end of "
        "the thread that *--end* or *--thread* names. Where a thread waited, the path continues in "
        "the thread that woke it. The segments add up to the whole time. Time that the recording "
        "does not explain is shown as unknown.\n\nIf the recording has CPU samples (run --threads "
        "--cpu), they show what a thread did while it ran: the time of a run is divided among its "
        "samples. Without samples, a run counts for the program's methods that were on the stack "
        "both before and after it.\n\nThe index of a recording with more than two million changes "
        "of state is kept as FILE.timeline. Building it takes 25 bytes of memory per event and the "
        "pages of that file; a replay of such a recording (*what-if*) takes 32 MB and these "
        "pages.",
        "  jvmscope threads critical-path app.jfr\n  jvmscope threads critical-path --end 'main' "
        "--json app.jfr\n"),
    ROW("what-if", what_if_sets, cmd_what_if,
        "estimate the time that the program would take with shorter sections",
        "Replays the recording with the sections of a lock or a method scaled by a factor. Without "
        "*--lock* and *--method* it answers for each of the locks that take most of the critical "
        "path, at half of its time.\n\nThe recording is replayed twice: with each lock granted in "
        "the recorded order, and with each lock granted to the thread that asks first. The second "
        "result is the answer, unless the recording has more than 20 million changes of state. A "
        "thread that reaches a free lock neither waits nor pays for a wake-up. If another thread "
        "holds a lock that was recorded with *--locks*, the thread waits.\n\nNine of ten runs of "
        "the changed program are expected within the interval. It contains both results and is "
        "widened by as much as one run differs from another. It does not exceed the recorded time "
        "if a section gets shorter, nor fall below it if a section gets longer. How much runs "
        "differ is estimated from this recording: from how much runs and waits of the same kind "
        "vary on the critical path (pauses and times without a processor: everywhere), and from "
        "the quartiles of the time that it took to hand a lock over to a sleeping thread. The "
        "interval does not account for differences between one start of the VM and the next, for "
        "locks that the recording does not show, or for threads that compete for processors only "
        "in the changed program, because the replay gives each thread its own. For programs bound "
        "by two processors it contained nine of ten runs (doc/measured/threads.md).\n\nIn the "
        "JSON, spread_ns is the standard deviation of one run. Record with *--locks* PATTERN for "
        "exact answers, because the VM posts no event for a thread that gets a monitor by "
        "spinning.",
        "  jvmscope threads what-if --lock 'com.acme.Cache' --factor 0.5 app.jfr\n"),
    ROW_OF("FILE|PID", "deadlocks", deadlock_sets, cmd_deadlocks,
           "find threads that wait for each other",
           "Prints cycles of threads in which each waits for a lock that the next one owns: at the "
           "end of a recording, or at this moment in a running VM. In a running VM only platform "
           "threads are found, because the VM reports no others; *run --deadlocks* also reports "
           "deadlocks of virtual threads, as soon as they form.",
           "  jvmscope threads deadlocks app.jfr\n  jvmscope threads deadlocks 4711\n"),
    NULL,
};

const struct command command_threads = {
    .name = "threads",
    .verbs = threads_verbs,
    .summary = "show who waits for whom: tables, timeline, critical path, what-if",
    .related = "run attach requests serve vm",
    .description =
        "Use it when a program is slow although it uses little CPU time: its threads wait. All "
        "verbs read a recording made with *--threads*, which has each wait and what ended it.",
    .caveats =
        "Where the owner of a lock is unknown, such as often a virtual thread on JDK 24 and "
        "later, the lock's share of the critical path and its gain may be too small, and a "
        "line says so. What-if replays the recorded dependencies: it does not know what else a "
        "faster program would have done.",
};
