/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live table of a VM. Its figures come from the counters that HotSpot publishes in memory
 * (hsperfdata) and from /proc, so the VM is not asked, stopped or changed. Thread states need the
 * agent and are shown on request.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "base/parse.h"
#include "base/vec.h"
#include "cli/commands.h"
#include "cli/json_view.h"
#include "cli/target.h"
#include "hotspot/hsperf.h"
#include "options/control.h"
#include "proto/check.h"

#include <dirent.h>
#include <errno.h>
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

enum { POOLS_MAX = 16, COLLECTORS_MAX = 4, STATES_MAX = 12, TASK_NAME = 15 };

struct task {
    pid_t tid;
    char name[128];
    char carries[128]; /* the virtual thread that it carried when the VM was asked; "": none */
    bool is_cut;     /* the kernel keeps 15 bytes of a name, and the VM has not provided the rest */
    uint64_t cpu_ns; /* a total; in a table the difference from the last sample */
};

/* A state of threads, and how many are in it. */
struct state {
    char name[16];
    unsigned count;
};

struct sample {
    uint64_t time_ns, cpu_ns, rss;

    struct pool {
        char *name;
        int64_t used, capacity; /* at the last collection; 0 before the first one */
    } pools[POOLS_MAX];

    struct {
        char *name;
        int64_t collections, time_ns;
    } collectors[COLLECTORS_MAX];

    int64_t threads, daemons, peak, loaded, unloaded, compile_ns, safepoints, safepoint_ns;
    size_t n_pools, n_collectors;
    char process[32]; /* the process's name in the kernel */
    VEC(struct task) tasks;

    struct state states[STATES_MAX];

    size_t n_states;
    char states_unknown[200];     /* why the VM gave none; "" if it did give one */
    const char *counters_unknown; /* why there are none; NULL if there are */
};

static void sample_release(struct sample *s)
{
    for (size_t i = 0; i < s->n_pools; i++)
        free(s->pools[i].name);
    for (size_t i = 0; i < s->n_collectors; i++)
        free(s->collectors[i].name);
    vec_release(&s->tasks);
    *s = (struct sample){0};
}

static int64_t number(const uint8_t *data, size_t len, const char *name)
{
    int64_t v = 0;
    return hsperf_number(data, len, name, &v) == 0 ? v : 0;
}

/*
 * Returns the CPU time in a stat file of /proc, in nanoseconds. The name in parentheses may contain
 * anything.
 */
static uint64_t stat_cpu(const char *path, char *name, size_t size)
{
    _cleanup_free_ uint8_t *data = NULL;
    size_t len;
    unsigned long user = 0, system = 0;
    if (file_read_path(path, 1 << 16, &data, &len) < 0)
        return 0;
    char *open = strchr((char *)data, '('), *end = strrchr((char *)data, ')');
    if (!open || !end ||
        sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) !=
            2)
        return 0;
    *end = 0;
    if (name)
        snprintf(name, size, "%s", open + 1);
    return (uint64_t)(user + system) * (NS_PER_SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
}

static void read_tasks(struct sample *s, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct task t = {.tid = atoi(e->d_name)};
        if (t.tid <= 0)
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, t.tid);
        t.cpu_ns = stat_cpu(path, t.name, sizeof(t.name));
        t.is_cut = strlen(t.name) >= TASK_NAME;
        if (vec_push(&s->tasks, t) < 0)
            break;
    }
    if (dir)
        closedir(dir);
}

static void read_pools(struct sample *s, const uint8_t *data, size_t len)
{
    char key[96];
    for (int g = 0; g < 3; g++) {
        for (int p = 0; p < 5 && s->n_pools < POOLS_MAX; p++) {
            snprintf(key, sizeof(key), "sun.gc.generation.%d.space.%d.name", g, p);
            char *name = hsperf_string(data, len, key);
            if (!name)
                break;
            if (g == 1 && strcmp(name, "space") == 0)
                snprintf(name, strlen(name) + 1, "old"); /* G1, Parallel and Serial name it so */
            s->pools[s->n_pools].name = name;
            snprintf(key, sizeof(key), "sun.gc.generation.%d.space.%d.used", g, p);
            s->pools[s->n_pools].used = number(data, len, key);
            snprintf(key, sizeof(key), "sun.gc.generation.%d.space.%d.capacity", g, p);
            s->pools[s->n_pools].capacity = number(data, len, key);
            /* G1 has no first survivor space, and publishes a capacity of one word for it. */
            if (s->pools[s->n_pools].capacity > 8)
                s->n_pools++;
            else
                free(name);
        }
    }
    char *metaspace = s->n_pools < POOLS_MAX ? strdup("metaspace") : NULL;
    if (metaspace) {
        s->pools[s->n_pools].name = metaspace;
        s->pools[s->n_pools].used = number(data, len, "sun.gc.metaspace.used");
        s->pools[s->n_pools++].capacity = number(data, len, "sun.gc.metaspace.capacity");
    }
}

static void read_counters(struct sample *s, const uint8_t *data, size_t len)
{
    int64_t frequency = number(data, len, "sun.os.hrt.frequency");
    double tick_ns = frequency > 0 ? 1e9 / (double)frequency : 1;
    char key[96];
    read_pools(s, data, len);
    for (int c = 0; c < COLLECTORS_MAX; c++) {
        snprintf(key, sizeof(key), "sun.gc.collector.%d.name", c);
        char *name = hsperf_string(data, len, key);
        if (!name)
            break;
        s->collectors[c].name = name;
        snprintf(key, sizeof(key), "sun.gc.collector.%d.invocations", c);
        s->collectors[c].collections = number(data, len, key);
        snprintf(key, sizeof(key), "sun.gc.collector.%d.time", c);
        s->collectors[c].time_ns = (int64_t)((double)number(data, len, key) * tick_ns);
        s->n_collectors++;
    }
    s->threads = number(data, len, "java.threads.live");
    s->daemons = number(data, len, "java.threads.daemon");
    s->peak = number(data, len, "java.threads.livePeak");
    s->loaded = number(data, len, "java.cls.loadedClasses") +
                number(data, len, "java.cls.sharedLoadedClasses");
    s->unloaded = number(data, len, "java.cls.unloadedClasses") +
                  number(data, len, "java.cls.sharedUnloadedClasses");
    s->compile_ns = (int64_t)((double)number(data, len, "java.ci.totalTime") * tick_ns);
    s->safepoints = number(data, len, "sun.rt.safepoints");
    s->safepoint_ns = (int64_t)((double)number(data, len, "sun.rt.safepointTime") * tick_ns);
}

/*
 * Returns whether the kernel's 15 bytes come from this name: its beginning, or HotSpot's
 * abbreviation.
 */
static bool is_part_of(const char *part, const char *name)
{
    size_t n = strlen(part), len = strlen(name);
    const char *dots = strstr(part, "..");
    if (strncmp(name, part, n) == 0)
        return true;
    size_t head = dots ? (size_t)(dots - part) : 0;
    size_t tail = dots ? n - head - 2 : 0;
    return dots && len >= n && strncmp(name, part, head) == 0 &&
           strcmp(name + len - tail, dots + 2) == 0;
}

/*
 * Gives a task the name that the VM has for it, of which the kernel has only a part. JDK 8 leaves
 * threads with the process's name.
 */
static void name_task(struct sample *s, pid_t tid, const char *name)
{
    for (size_t i = 0; i < s->tasks.len; i++) {
        struct task *t = &s->tasks.data[i];
        if (t->tid != tid || !((t->is_cut && is_part_of(t->name, name)) || !*t->name ||
                               strcmp(t->name, s->process) == 0))
            continue;
        t->is_cut = strlen(name) >= sizeof(t->name);
        snprintf(t->name, sizeof(t->name), "%s", name);
    }
}

static void name_carried(struct sample *s, pid_t carrier, const char *name)
{
    for (size_t i = 0; i < s->tasks.len; i++)
        if (s->tasks.data[i].tid == carrier)
            snprintf(s->tasks.data[i].carries, sizeof(s->tasks.data[i].carries), "%s",
                     name && *name ? name : "a virtual thread without a name");
}

enum { STATE, TID, NAME, CARRIER };

static void see_thread(void *context, const char *const values[])
{
    struct sample *s = context;
    const char *name = values[STATE];
    size_t at = 0;
    uint64_t tid;
    if (values[NAME] && values[TID] && parse_u64(values[TID], 1, INT32_MAX, &tid) == 0)
        name_task(s, (pid_t)tid, values[NAME]);
    if (values[CARRIER] && parse_u64(values[CARRIER], 1, INT32_MAX, &tid) == 0)
        name_carried(s, (pid_t)tid, values[NAME]);
    if (!name)
        return;
    while (at < s->n_states && strcmp(s->states[at].name, name) != 0)
        at++;
    if (at == STATES_MAX)
        return;
    if (at == s->n_states)
        snprintf(s->states[s->n_states++].name, sizeof(s->states[at].name), "%s", name);
    s->states[at].count++;
}

static int compare_states(const void *a, const void *b)
{
    const struct state *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->name, y->name);
}

static void read_states(struct sample *s, const struct vm *vm)
{
    _cleanup_(buf_release) struct buf answer = BUF(CONTROL_ANSWER_MAX), why = BUF(4096);
    int r = agent_message(vm, "control=inspect,threads", true, &answer, &why);
    if (r < 0) {
        snprintf(s->states_unknown, sizeof(s->states_unknown), "%s",
                 why.len ? buf_str(&why) : strerror(-r));
        return;
    }
    _cleanup_free_ char *text = agent_answer_value(buf_str(&answer), "json", 0);
    static const char *const keys[] = {
        [STATE] = "state", [TID] = "tid", [NAME] = "name", [CARRIER] = "carrier_tid", NULL};
    if (!text || json_view_each(text, "threads", keys, see_thread, s) < 0)
        s->n_states = 0;
    if (s->n_states)
        qsort(s->states, s->n_states, sizeof(s->states[0]), compare_states);
}

static int take_sample(struct sample *ret, const struct vm *vm, bool states)
{
    struct sample s = {.time_ns = now_ns()};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", vm->pid);
    if (access(path, R_OK) < 0)
        return -ESRCH;
    s.cpu_ns = stat_cpu(path, s.process, sizeof(s.process));
    _cleanup_free_ uint8_t *statm = NULL, *data = NULL;
    size_t len;
    unsigned long pages = 0;
    snprintf(path, sizeof(path), "/proc/%d/statm", vm->pid);
    if (file_read_path(path, 4096, &statm, &len) == 0 &&
        sscanf((char *)statm, "%*u %lu", &pages) == 1)
        s.rss = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    read_tasks(&s, vm->pid);
    if (vm_counters(vm, &data, &len) == 0)
        read_counters(&s, data, len);
    else
        s.counters_unknown = check_why_no_counters(vm);
    if (states)
        read_states(&s, vm);
    *ret = s;
    return 0;
}

static int by_cpu(const void *a, const void *b)
{
    const struct task *x = a, *y = b;
    return x->cpu_ns == y->cpu_ns ? (x->tid > y->tid) - (x->tid < y->tid)
                                  : (x->cpu_ns < y->cpu_ns) - (x->cpu_ns > y->cpu_ns);
}

/*
 * Replaces the CPU times of the tasks by the CPU time that they used since the last sample, and
 * sorts the tasks by that.
 */
static void since(struct sample *now, const struct sample *before)
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
        qsort(now->tasks.data, now->tasks.len, sizeof(struct task), by_cpu);
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Returns whether a use of 0 is real. Before the first collection the VM has published none. */
static bool is_used_known(const struct sample *s, const struct pool *p)
{
    int64_t collections = 0;
    for (size_t i = 0; i < s->n_collectors; i++)
        collections += s->collectors[i].collections;
    return p->used || collections;
}

static void print_pool(const struct sample *s, const struct pool *p)
{
    char used[24] = "-", capacity[24] = "-", full[24] = "-";
    if (is_used_known(s, p)) {
        format_size(used, (uint64_t)p->used);
        snprintf(full, sizeof(full), "%.1f %%", percent((uint64_t)p->used, (uint64_t)p->capacity));
    }
    if (p->capacity)
        format_size(capacity, (uint64_t)p->capacity);
    printf("%-26s %12s %12s %8s\n", p->name, used, capacity, full);
}

/* What the VM publishes itself, after the figures of the system. */
static void print_counted(const struct sample *s, const struct sample *before, uint64_t elapsed)
{
    printf("threads %" PRId64 " (%" PRId64 " daemon, peak %" PRId64 ")  classes %" PRId64
           " (%" PRId64 " unloaded)  compiling %.1f %%  safepoints %" PRId64 " (%.2f %%)\n",
           s->threads, s->daemons, s->peak, s->loaded - s->unloaded, s->unloaded,
           percent((uint64_t)(s->compile_ns - before->compile_ns), elapsed),
           s->safepoints - before->safepoints,
           percent((uint64_t)(s->safepoint_ns - before->safepoint_ns), elapsed));
}

static void print_heap(const struct sample *s, const struct sample *before)
{
    char time[24];
    printf("\n%-26s %12s %12s %8s\n", "POOL (at last collection)", "USED", "CAPACITY", "FULL");
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

static void print_table(const struct vm *vm, const struct sample *s, const struct sample *before,
                        uint64_t rows)
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
        print_counted(s, before, elapsed);
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

static void print_json(const struct sample *s, const struct sample *before, uint64_t rows)
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
    key_known(&j, "compile_ns", s->compile_ns, counted);
    key_known(&j, "safepoints", s->safepoints, counted);
    key_known(&j, "safepoint_ns", s->safepoint_ns, counted);
    if (!counted)
        json_key_string(&j, "counters_unknown", s->counters_unknown);
    json_key_array(&j, "pools");
    for (size_t i = 0; i < s->n_pools; i++) {
        json_begin_object(&j);
        json_key_string(&j, "name", s->pools[i].name);
        key_known(&j, "used", s->pools[i].used, is_used_known(s, &s->pools[i]));
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
    struct sample before = {0}, s;
    bool screen = isatty(STDOUT_FILENO) && !o.json;
    int r = take_sample(&before, &vm, false);
    for (uint64_t n = 0; r == 0 && (!o.count || n < o.count); n++) {
        struct timespec pause = {(time_t)(o.interval / NS_PER_SECOND),
                                 (long)(o.interval % NS_PER_SECOND)};
        nanosleep(&pause, NULL);
        r = take_sample(&s, &vm, o.states);
        if (r < 0)
            break;
        struct sample whole = s; /* the tasks' totals, for the next difference */
        whole.tasks.data = malloc(MAX(s.tasks.len, 1) * sizeof(struct task));
        if (whole.tasks.data && s.tasks.len)
            memcpy(whole.tasks.data, s.tasks.data, s.tasks.len * sizeof(struct task));
        whole.tasks.cap = whole.tasks.len = whole.tasks.data ? s.tasks.len : 0;
        since(&s, &before);
        if (screen)
            fputs("\033[H\033[2J", stdout);
        o.json ? print_json(&s, &before, o.rows) : print_table(&vm, &s, &before, o.rows);
        bool printed = fflush(stdout) == 0;
        vec_release(&s.tasks);
        sample_release(&before);
        before = whole;
        if (!printed) /* nobody reads on, or the disk is full: main reports which */
            break;
    }
    sample_release(&before);
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
        "*inspect PID classes* lists as well, and counts those of an agent, which it does not.",
    .caveats =
        "A VM that publishes no counters, for example with *-XX:-UsePerfData*, has no figures "
        "of its heap, collections, classes and compilation; those from /proc remain. A peak "
        "that is shorter than the interval is not seen.",
    .examples = "  jvmscope top 4711\n"
                "  jvmscope top --json -i 10s 4711 >>vm.jsonl       a line every ten seconds\n",
    .sets = top_sets,
};
