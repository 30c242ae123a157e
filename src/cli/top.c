/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live table of a VM. Its figures come from the counters that HotSpot publishes in memory
 * (hsperfdata) and from /proc, so the VM is not asked, stopped or changed. Thread states need the
 * agent and are shown on request.
 */
#include "base/clock.h"
#include "base/json.h"
#include "base/map.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/target.h"
#include "cli/top_sample.h"

#include <inttypes.h>
#include <string.h>

struct top {
    bool json, states;
    uint64_t interval, count, rows;
};

static const struct arg top_args[] = {
    {"--interval", 'i', ARG_DURATION, offsetof(struct top, interval), "TIME",
     "time between two tables (1s, at least 10ms)", .min = NS_PER_SECOND / 100},
    {"--count", 'n', ARG_COUNT, offsetof(struct top, count), "N",
     "number of tables to show, as in top(1) (until interrupted)"},
    {"--rows", 'r', ARG_COUNT, offsetof(struct top, rows), "N", "threads to show (15)"},
    {"--states", 0, ARG_FLAG, offsetof(struct top, states), NULL,
     "count threads by state, and show their full names and the virtual threads that they carry; "
     "loads the agent into the VM"},
    {"--json", 0, ARG_FLAG, offsetof(struct top, json), NULL,
     "print a line of JSON for each table"},
    {0},
};

static const struct arg_set top_set = {"What is shown", top_args};
static const struct arg_set *const top_sets[] = {&top_set, NULL};

static int by_cpu(const void *a, const void *b)
{
    const struct top_task *x = a, *y = b;
    return x->cpu_ns == y->cpu_ns ? (x->tid > y->tid) - (x->tid < y->tid)
                                  : (x->cpu_ns < y->cpu_ns) - (x->cpu_ns > y->cpu_ns);
}

/*
 * Replaces the CPU times of the tasks by the CPU time that they used since the last sample, and
 * sorts the tasks by that.
 */
static void since(struct top_sample *now, const struct top_sample *before)
{
    struct map old = {0};
    for (size_t i = 0; i < before->tasks.len; i++) {
        if (map_put(&old, (uint64_t)before->tasks.data[i].tid, before->tasks.data[i].cpu_ns) < 0)
            break;
    }
    for (size_t i = 0; i < now->tasks.len; i++) {
        const uint64_t *cpu = map_get(&old, (uint64_t)now->tasks.data[i].tid);
        now->tasks.data[i].cpu_ns -= cpu ? MIN(*cpu, now->tasks.data[i].cpu_ns) : 0;
    }
    map_release(&old);
    if (now->tasks.len)
        qsort(now->tasks.data, now->tasks.len, sizeof(struct top_task), by_cpu);
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_pool(const struct top_sample *s, const struct top_pool *p)
{
    char used[24] = "-", capacity[24] = "-", full[24] = "-";
    if (top_pool_used_known(s, p)) {
        format_size(used, (uint64_t)p->used);
        snprintf(full, sizeof(full), "%.1f %%", percent((uint64_t)p->used, (uint64_t)p->capacity));
    }
    if (p->capacity)
        format_size(capacity, (uint64_t)p->capacity);
    printf("%-26s %12s %12s %8s\n", p->name, used, capacity, full);
}

/* What the VM publishes itself, after the figures of the system. */
static void print_counted(const struct top_sample *s, const struct top_sample *before,
                          uint64_t elapsed, pid_t pid)
{
    printf("threads %" PRId64 " (%" PRId64 " daemon, peak %" PRId64 ")  classes %" PRId64
           " (%" PRId64 " unloaded)  compiling %.1f %%  safepoints %" PRId64 " (%.2f %%)\n",
           s->threads, s->daemons, s->peak, s->loaded - s->unloaded, s->unloaded,
           percent((uint64_t)(s->compile_ns - before->compile_ns), elapsed),
           s->safepoints - before->safepoints,
           percent((uint64_t)(s->safepoint_ns - before->safepoint_ns), elapsed));
    if (s->counts_changed)
        printf("An agent is loaded, and the VM counts each class that it changes once more: "
               "jvmscope inspect %d classes counts those that are loaded.\n",
               pid);
}

static void print_heap(const struct top_sample *s, const struct top_sample *before)
{
    char time[24];
    printf("\n%-26s %12s %12s %8s\n", "POOL (last published)", "USED", "CAPACITY", "FULL");
    for (size_t i = 0; i < s->n_pools; i++)
        print_pool(s, &s->pools[i]);
    printf("\n%-48s %12s %12s\n", "COLLECTOR", "COLLECTIONS", "TIME");
    for (size_t i = 0; i < s->n_collectors; i++)
        printf("%-48s %6" PRId64 " %+5" PRId64 " %12s\n", s->collectors[i].name,
               s->collectors[i].collections,
               s->collectors[i].collections -
                   (i < before->n_collectors ? before->collectors[i].collections : 0),
               format_duration(time, (uint64_t)s->collectors[i].time_ns));
}

static void print_table(const struct vm *vm, const struct top_sample *s,
                        const struct top_sample *before, uint64_t rows)
{
    char a[24];
    uint64_t elapsed = s->time_ns - before->time_ns;
    printf("%d  ", vm->pid);
    print_text(stdout, (struct str){vm->command ? vm->command : "?",
                                    strnlen(vm->command ? vm->command : "?", 80)});
    printf("\ncpu %.1f %%  resident %s  ", percent(s->cpu_ns - before->cpu_ns, elapsed),
           format_size(a, s->rss));
    if (s->counters_unknown)
        printf("threads -  classes -  compiling -  safepoints -\nThe VM's own figures, its pools "
               "and its collectors are not known: %s.\n",
               s->counters_unknown);
    else
        print_counted(s, before, elapsed, vm->pid);
    for (size_t i = 0; i < s->n_states; i++)
        printf("%s%s %u", i ? "  " : "states: ", s->states[i].name, s->states[i].count);
    if (*s->states_unknown)
        printf("states: not known: %s", s->states_unknown);
    if (s->n_states || *s->states_unknown)
        putchar('\n');
    if (!s->counters_unknown)
        print_heap(s, before);
    printf("\n%8s %7s  %s\n", "TID", "CPU", "THREAD");
    for (size_t i = 0; i < MIN(s->tasks.len, rows); i++) {
        const char *name =
            *s->tasks.data[i].name ? s->tasks.data[i].name : "a thread without a name";
        printf("%8d %5.1f %%  ", s->tasks.data[i].tid, percent(s->tasks.data[i].cpu_ns, elapsed));
        print_text(stdout, (struct str){name, strlen(name)});
        fputs(s->tasks.data[i].is_cut ? "..." : "", stdout);
        const char *carries = s->tasks.data[i].carries;
        if (*carries) {
            printf(" carries ");
            print_text(stdout, (struct str){carries, strlen(carries)});
        }
        putchar('\n');
    }
    putchar('\n');
}

static void key_number(struct json *j, const char *key, int64_t v)
{
    json_key_i64(j, key, v);
}

static void key_known(struct json *j, const char *key, int64_t v, bool is_known)
{
    json_key(j, key);
    if (is_known)
        json_i64(j, v);
    else
        json_null(j);
}

static void print_json(const struct top_sample *s, const struct top_sample *before, uint64_t rows)
{
    _cleanup_(buf_release) struct buf out = BUF(1 << 24);
    struct json j = {.out = &out};
    uint64_t elapsed = s->time_ns - before->time_ns;
    bool counted = !s->counters_unknown;
    json_begin_object(&j);
    key_number(&j, "elapsed_ns", (int64_t)elapsed);
    key_number(&j, "cpu_ns", (int64_t)(s->cpu_ns - before->cpu_ns));
    key_number(&j, "resident", (int64_t)s->rss);
    key_known(&j, "threads", s->threads, counted);
    key_known(&j, "daemons", s->daemons, counted);
    key_known(&j, "peak_threads", s->peak, counted);
    key_known(&j, "classes_loaded", s->loaded, counted);
    key_known(&j, "classes_unloaded", s->unloaded, counted);
    if (counted && s->counts_changed)
        json_key_bool(&j, "changed_classes_counted_again", true);
    key_known(&j, "compile_ns", s->compile_ns, counted);
    key_known(&j, "safepoints", s->safepoints, counted);
    key_known(&j, "safepoint_ns", s->safepoint_ns, counted);
    if (!counted)
        json_key_string(&j, "counters_unknown", s->counters_unknown);
    json_key_array(&j, "pools");
    for (size_t i = 0; i < s->n_pools; i++) {
        json_begin_object(&j);
        json_key_string(&j, "name", s->pools[i].name);
        key_known(&j, "used", s->pools[i].used, top_pool_used_known(s, &s->pools[i]));
        key_known(&j, "capacity", s->pools[i].capacity, s->pools[i].capacity != 0);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_key_array(&j, "collectors");
    for (size_t i = 0; i < s->n_collectors; i++) {
        json_begin_object(&j);
        json_key_string(&j, "name", s->collectors[i].name);
        key_number(&j, "collections", s->collectors[i].collections);
        key_number(&j, "time_ns", s->collectors[i].time_ns);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_key_object(&j, "states");
    for (size_t i = 0; i < s->n_states; i++)
        key_number(&j, s->states[i].name, s->states[i].count);
    json_end_object(&j);
    if (*s->states_unknown)
        json_key_string(&j, "states_unknown", s->states_unknown);
    json_key_array(&j, "busiest");
    for (size_t i = 0; i < MIN(s->tasks.len, rows); i++) {
        json_begin_object(&j);
        key_number(&j, "tid", s->tasks.data[i].tid);
        json_key_string(&j, "name", s->tasks.data[i].name);
        json_key_bool(&j, "name_cut", s->tasks.data[i].is_cut);
        key_number(&j, "cpu_ns", (int64_t)s->tasks.data[i].cpu_ns);
        if (*s->tasks.data[i].carries)
            json_key_string(&j, "carries", s->tasks.data[i].carries);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
    puts(buf_str(&out));
}

static int cmd_top(const struct command *self, int argc, char **argv)
{
    struct top o = {.interval = NS_PER_SECOND, .rows = 15};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &o}), argc, argv, &operands, &status))
        return status;
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    status = o.states ? target_open(&vm, operands.list[0]) : target_find(&vm, operands.list[0]);
    if (status)
        return status;
    struct top_sample before = {0}, s;
    bool screen = isatty(STDOUT_FILENO) && !o.json;
    int r = top_sample_take(&before, &vm, false);
    for (uint64_t n = 0; r == 0 && (!o.count || n < o.count); n++) {
        struct timespec pause = {(time_t)(o.interval / NS_PER_SECOND),
                                 (long)(o.interval % NS_PER_SECOND)};
        nanosleep(&pause, NULL);
        r = top_sample_take(&s, &vm, o.states);
        if (r < 0)
            break;
        struct top_sample whole = s; /* the tasks' totals, for the next difference */
        whole.tasks.data = malloc(MAX(s.tasks.len, 1) * sizeof(struct top_task));
        if (whole.tasks.data && s.tasks.len)
            memcpy(whole.tasks.data, s.tasks.data, s.tasks.len * sizeof(struct top_task));
        whole.tasks.cap = whole.tasks.len = whole.tasks.data ? s.tasks.len : 0;
        since(&s, &before);
        if (screen)
            fputs("\033[H\033[2J", stdout);
        o.json ? print_json(&s, &before, o.rows) : print_table(&vm, &s, &before, o.rows);
        bool printed = fflush(stdout) == 0;
        vec_release(&s.tasks);
        top_sample_release(&before);
        before = whole;
        if (!printed) /* nobody reads on, or the disk is full: main reports which */
            break;
    }
    top_sample_release(&before);
    return r < 0 ? complain(operands.list[0], "top", "the program has ended") : 0;
}

const struct command command_top = {
    .name = "top",
    .run = cmd_top,
    .operands = "PID",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "show a running VM: heap, collections, threads, classes, compilation",
    .related = "list inspect attach",
    .description =
        "Use it for a first look at a running program: it shows whether CPU time, memory, "
        "collections or threads are the problem.\n\n"
        "Prints a table every second; on a terminal it replaces the one before. The figures come "
        "from the counters that the VM publishes and from /proc, at no cost to the program. Thread "
        "states need the agent (*--states*). The VM counts no arrays among its classes, which "
        "*inspect PID classes* lists as well, and counts those of an agent, which it does not. "
        "Each time that an agent changes a class, as recordings with *--trace* do, the VM counts "
        "it once more.",
    .caveats =
        "A VM that publishes no counters, for example with *-XX:-UsePerfData*, has no figures "
        "of its heap, collections, classes and compilation; those from /proc remain. A peak "
        "that is shorter than the interval is not seen.",
    .examples = "  jvmscope top 4711\n"
                "  jvmscope top --json -i 10s 4711 >>vm.jsonl       a line every ten seconds\n",
    .sets = top_sets,
};
