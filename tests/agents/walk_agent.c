/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent of unwind/test_walker.py. It copies stacks in a signal handler and walks
 * them later, or walks them immediately (with later=0, and when they are too deep to copy). On
 * request it also calls AsyncGetCallTrace for comparison. At the end of the VM it writes counts.
 * Options:
 * out=FILE,interval=US,mode=cpu|wall|busy,compare=0|1,native=0|1,later=0|1,depth=N,tops=N,dump=N,
 * stacks=N,retransform=MS (how often classes whose name begins with WalkStress are redefined).
 */
#include "agent/sampler/ring.h"
#include "agent/stacks/chunks.h"
#include "base/clock.h"
#include "hotspot/layout.h"
#include "hotspot/memory.h"
#include "hotspot/method.h"
#include "unwind/arch.h"
#include "unwind/snapshot.h"
#include "unwind/symbols.h"
#include "unwind/walk.h"
#include "walk_names.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <jvmti.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    SAMPLES_MAX = 40000,
    KEPT_FRAMES = 96,
    DEPTH_MAX = 12000,
    THREADS_MAX = 4096,
    BUFFERS = 64,
    COSTS_MAX = 1 << 16,
    RING = 32 << 20,
    DRAIN_NS = 50000000
};

typedef struct {
    jint lineno;
    jmethodID method_id;
} AsgctFrame;

typedef struct {
    JNIEnv *env_id;
    jint num_frames;
    AsgctFrame *frames;
} AsgctTrace;

struct sample {
    struct walk_frame frames[KEPT_FRAMES];
    AsgctFrame oracle[KEPT_FRAMES];
    unsigned count, total; /* numbers of frames kept and walked */
    int oracle_count;
    struct walk_end end;
    uint64_t pc, sp, fp; /* of the interrupted thread */
    uint64_t stack[40];
    uint8_t code[48]; /* the code around the instruction, from 24 bytes before it */
};

static struct {
    char out[512], mode[16];
    long interval, compare, native, depth, tops, dump, retransform, stacks, later;
} options = {.out = "/dev/stderr",
             .mode = "cpu",
             .interval = 1000,
             .compare = 1,
             .depth = 256,
             .tops = 15,
             .later = 1};

static struct walk_names names;
static char why[200];
static void (*oracle)(AsgctTrace *, jint, void *);
static struct sample *samples;
static uint32_t sample_count;
static uint64_t status_counts[WALK_STATUSES], recovered_count, taken, oracle_failed, busy;
static uint32_t oracle_costs[COSTS_MAX];
/*
 * In each element: nanoseconds << 12 | depth, for the handler and for the later walk. The report
 * has a figure of its own for stacks of about 50 frames.
 */
static uint32_t *costs, *later_costs;
static struct record_ring ring;
static struct snapshot_walker *later_walker;
static struct walk_frame *later_frames;
static pthread_mutex_t later_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t later_taken;
static struct walk_frame *buffers[BUFFERS];
static AsgctFrame *oracle_buffers[BUFFERS];
static int buffer_used[BUFFERS];
static pid_t threads[THREADS_MAX];
static uint32_t thread_count;
static unsigned retransformed, deepest;
static volatile int stopping, kinds_seen[WALK_KINDS];
static __thread JNIEnv *thread_env __attribute__((tls_model("initial-exec")));

static int take_buffer(void)
{
    for (int i = 0; i < BUFFERS; i++)
        if (!__atomic_exchange_n(&buffer_used[i], 1, __ATOMIC_ACQUIRE))
            return i;
    return -1;
}

static void note_context(struct sample *s, void *context)
{
    struct registers r;
    arch_registers(context, &r);
    s->pc = r.pc;
    s->sp = r.sp;
    s->fp = r.fp;
    (void)memory_read(&process_memory, r.pc - 24, s->code, sizeof(s->code));
    (void)memory_read(&process_memory, r.sp, s->stack, sizeof(s->stack));
}

static void note_cost(uint32_t *of, uint32_t at, uint64_t ns, unsigned depth)
{
    if (at < COSTS_MAX)
        of[at] = (uint32_t)MIN(ns, UINT64_C(0xfffff)) << 12 | MIN(depth, 4095u);
}

/* Records the stack that was found for a sample. */
static void note_walk(uint32_t at, const struct walk_frame *frames, unsigned n,
                      const struct walk_end *end)
{
    __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&status_counts[end->status], 1, __ATOMIC_RELAXED);
    if (end->recovered)
        __atomic_fetch_add(&recovered_count, 1, __ATOMIC_RELAXED);
    if (n > deepest)
        deepest = n;
    for (unsigned i = 0; i < n; i++)
        kinds_seen[frames[i].kind]++;
    if (at >= SAMPLES_MAX)
        return;
    struct sample *s = &samples[at];
    s->total = n;
    s->count = n < KEPT_FRAMES ? n : KEPT_FRAMES;
    s->end = *end;
    memcpy(s->frames, frames, s->count * sizeof(s->frames[0]));
}

struct later {
    struct ring_record head;
    uint64_t ns;
    uint32_t at;
    struct snapshot snapshot;
};

/* Copies the stack as the sampler does. Returns false when it must be walked immediately. */
static int keep_for_later(uint32_t at, void *context, JNIEnv *env)
{
    struct snapshot measured;
    uint64_t position, begin = now_ns();
    if (!options.later || !snapshot_measure(names.walker, context, env, &measured))
        return 0;
    struct later *l =
        (struct later *)(void *)ring_take(&ring, sizeof(*l) + snapshot_bytes(&measured), &position);
    if (!l)
        return 0;
    l->at = at;
    snapshot_take(names.walker, &measured, &l->snapshot);
    l->ns = now_ns() - begin;
    ring_put(&l->head, position);
    return 1;
}

static void drain(void)
{
    struct ring_record *record;
    pthread_mutex_lock(&later_lock);
    while ((record = ring_next(&ring))) {
        struct later *l = (struct later *)(void *)record;
        struct walk_end end;
        uint64_t begin = now_ns();
        unsigned n =
            snapshot_walk(later_walker, &l->snapshot, options.native ? WALK_WITH_NATIVE : 0,
                          later_frames, (unsigned)options.depth, &end);
        note_cost(later_costs, l->at, now_ns() - begin, n);
        note_cost(costs, l->at, l->ns, n);
        note_walk(l->at, later_frames, n, &end);
        later_taken++;
        ring_done(&ring, record);
    }
    pthread_mutex_unlock(&later_lock);
}

static void *drain_often(void *unused)
{
    while (!stopping) {
        nanosleep(&(struct timespec){.tv_nsec = DRAIN_NS}, NULL);
        drain();
    }
    return NULL;
}

static void walk_at_once(uint32_t at, void *context, JNIEnv *env, struct walk_frame *frames)
{
    struct walk_end end;
    uint64_t begin = now_ns();
    walker_fetch(names.walker, context);
    unsigned n = walk_stack(names.walker, context, env, options.native ? WALK_WITH_NATIVE : 0,
                            frames, (unsigned)options.depth, &end);
    note_cost(costs, at, now_ns() - begin, n);
    note_walk(at, frames, n, &end);
}

static void ask_oracle(uint32_t at, void *context, JNIEnv *env, AsgctFrame *frames)
{
    AsgctTrace trace = {.env_id = env, .frames = frames};
    if (options.compare && oracle) {
        uint64_t begin = now_ns();
        oracle(&trace, (jint)options.depth, context);
        if (trace.num_frames > 0)
            note_cost(oracle_costs, at, now_ns() - begin, (unsigned)trace.num_frames);
        else
            __atomic_fetch_add(&oracle_failed, 1, __ATOMIC_RELAXED);
    }
    if (at >= SAMPLES_MAX)
        return;
    samples[at].oracle_count = trace.num_frames;
    if (trace.num_frames > 0)
        memcpy(samples[at].oracle, frames,
               (size_t)MIN(trace.num_frames, KEPT_FRAMES) * sizeof(frames[0]));
}

static void on_sample(int signal_number, siginfo_t *info, void *context)
{
    int saved = errno, b;
    JNIEnv *env = thread_env;
    if (stopping || !env || !names.walker)
        return;
    if ((b = take_buffer()) < 0) {
        __atomic_fetch_add(&busy, 1, __ATOMIC_RELAXED);
        return;
    }
    uint32_t at = __atomic_fetch_add(&sample_count, 1, __ATOMIC_RELAXED);
    if (!keep_for_later(at, context, env))
        walk_at_once(at, context, env, buffers[b]);
    ask_oracle(at, context, env, oracle_buffers[b]);
    if (at < SAMPLES_MAX)
        note_context(&samples[at], context);
    __atomic_store_n(&buffer_used[b], 0, __ATOMIC_RELEASE);
    errno = saved;
}

/*
 * True when a thread runs or waits for a processor, according to the third word of its line in
 * /proc.
 */
static int is_running(pid_t tid)
{
    char path[64], text[256], *state;
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    state = strrchr(text, ')');
    return state && state[1] == ' ' && state[2] == 'R';
}

static void *kick(void *unused)
{
    uint32_t at = 0, kicks = 0;
    uint64_t seed = (uint64_t)getpid();
    while (!stopping) {
        /*
         * Between half an interval and one and a half, so that a program with a regular period is
         * not always sampled at the same place.
         */
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        long ns =
            options.interval * 500 + (long)((seed >> 33) % (uint64_t)(options.interval * 1000));
        struct timespec t = {ns / 1000000000, ns % 1000000000};
        nanosleep(&t, NULL);
        uint32_t n = __atomic_load_n(&thread_count, __ATOMIC_ACQUIRE);
        for (uint32_t i = 0; i < n && i < THREADS_MAX; i++) {
            pid_t tid = threads[at++ % (n < THREADS_MAX ? n : THREADS_MAX)];
            if (tid && (options.mode[0] == 'w' || is_running(tid))) {
                syscall(SYS_tgkill, getpid(), tid, SIGVTALRM);
                break;
            }
        }
        if (++kicks % 64 == 0)
            walker_refresh(names.walker);
    }
    return NULL;
}

static void JNICALL on_thread_start(jvmtiEnv *ti, JNIEnv *env, jthread thread)
{
    thread_env = env;
    pid_t tid = (pid_t)syscall(SYS_gettid);
    for (uint32_t i = 0; i < thread_count && i < THREADS_MAX; i++)
        if (__sync_bool_compare_and_swap(&threads[i], 0, tid))
            return;
    uint32_t at = __atomic_fetch_add(&thread_count, 1, __ATOMIC_ACQ_REL);
    if (at < THREADS_MAX)
        threads[at] = tid;
}

static void JNICALL on_thread_end(jvmtiEnv *ti, JNIEnv *env, jthread thread)
{
    pid_t tid = (pid_t)syscall(SYS_gettid);
    thread_env = NULL;
    for (uint32_t i = 0; i < thread_count && i < THREADS_MAX; i++)
        (void)__sync_bool_compare_and_swap(&threads[i], tid, 0);
}

static void make_ids(jvmtiEnv *ti, jclass class)
{
    jint n;
    jmethodID *ids;
    if (options.compare && (*ti)->GetClassMethods(ti, class, &n, &ids) == JVMTI_ERROR_NONE)
        (*ti)->Deallocate(ti, (unsigned char *)ids);
}

static void JNICALL on_class_load(jvmtiEnv *ti, JNIEnv *env, jthread thread, jclass class)
{
}

static void JNICALL on_class_prepare(jvmtiEnv *ti, JNIEnv *env, jthread thread, jclass class)
{
    make_ids(ti, class);
}

static void JNICALL on_compiled(jvmtiEnv *ti, jmethodID m, jint size, const void *at, jint n,
                                const jvmtiAddrLocationMap *map, const void *info)
{
}

/* Sleeps through any signals, because this thread is sampled too. */
static void wait_until(uint64_t ns)
{
    const struct timespec t = {(time_t)(ns / NS_PER_SECOND), (long)(ns % NS_PER_SECOND)};
    while (!stopping && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        continue;
}

static void JNICALL retransform(jvmtiEnv *ti, JNIEnv *env, void *unused)
{
    while (!stopping) {
        jint n = 0;
        jclass *classes = NULL, chosen[16];
        jint count = 0;
        wait_until(now_ns() + (uint64_t)options.retransform * NS_PER_MS);
        if ((*env)->PushLocalFrame(env, 4096) < 0 ||
            (*ti)->GetLoadedClasses(ti, &n, &classes) != JVMTI_ERROR_NONE)
            return;
        for (jint i = 0; i < n && count < 16; i++) {
            char *signature = NULL;
            if ((*ti)->GetClassSignature(ti, classes[i], &signature, NULL) == JVMTI_ERROR_NONE &&
                signature && strncmp(signature, "LWalkStress", 11) == 0 &&
                !strpbrk(signature, "/."))
                chosen[count++] = classes[i];
            (*ti)->Deallocate(ti, (unsigned char *)signature);
        }
        if (count && (*ti)->RetransformClasses(ti, count, chosen) == JVMTI_ERROR_NONE)
            retransformed += (unsigned)count;
        (*ti)->Deallocate(ti, (unsigned char *)classes);
        (*env)->PopLocalFrame(env, NULL);
    }
}

static void start_retransform(jvmtiEnv *ti, JNIEnv *env)
{
    jclass class = (*env)->FindClass(env, "java/lang/Thread");
    jmethodID constructor = class ? (*env)->GetMethodID(env, class, "<init>", "()V") : NULL;
    jthread thread = constructor ? (*env)->NewObject(env, class, constructor) : NULL;
    if (thread)
        (*ti)->RunAgentThread(ti, thread, retransform, NULL, JVMTI_THREAD_NORM_PRIORITY);
}

static uint64_t java_thread_of(JNIEnv *env)
{
    jthread self = NULL;
    if ((*names.jvmti)->GetCurrentThread(names.jvmti, &self) != JVMTI_ERROR_NONE)
        return 0;
    jclass class = (*env)->FindClass(env, "java/lang/Thread");
    jfieldID field = class ? (*env)->GetFieldID(env, class, "eetop", "J") : NULL;
    return field ? (uint64_t)(*env)->GetLongField(env, self, field) : 0;
}

/* Starts a thread that our signals do not interrupt. */
static void start_thread(void *(*run)(void *))
{
    pthread_t thread;
    sigset_t all, old;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV); /* needed for guarded loads */
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&thread, NULL, run, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void start_later(void)
{
    options.later = options.later && snapshot_possible(names.walker) &&
                    (later_walker = snapshot_walker_new(names.walker)) &&
                    (later_frames = malloc(DEPTH_MAX * sizeof(*later_frames))) &&
                    ring_open(&ring, RING) == 0;
    if (options.later)
        start_thread(drain_often);
}

static void start_signals(void)
{
    struct sigaction action = {.sa_sigaction = on_sample,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigaction(SIGVTALRM, &action, NULL);
    if (strcmp(options.mode, "cpu") == 0) {
        struct itimerval timer = {{options.interval / 1000000, options.interval % 1000000},
                                  {0, options.interval % 1000000}};
        setitimer(ITIMER_VIRTUAL, &timer, NULL);
    } else {
        start_thread(kick);
    }
}

static void JNICALL on_init(jvmtiEnv *ti, JNIEnv *env, jthread thread)
{
    void *vm = dlopen("libjvm.so", RTLD_NOLOAD | RTLD_LAZY);
    jint n;
    jclass *classes;
    thread_env = env;
    if (vm)
        *(void **)&oracle = dlsym(vm, "AsyncGetCallTrace");
    if (options.compare && (*ti)->GetLoadedClasses(ti, &n, &classes) == JVMTI_ERROR_NONE)
        for (jint i = 0; i < n; i++)
            make_ids(ti, classes[i]);
    int r =
        vm ? walker_new(&names.walker, vm, env, java_thread_of(env), why, sizeof(why)) : -ENOENT;
    struct hotspot_image image = hotspot_image_of_library(vm);
    struct walk_chunks chunks;
    if (r == 0 && chunks_find(env, walker_layout(names.walker), &image, &chunks))
        walker_chunks(names.walker, &chunks);
    if (r == 0)
        start_later();
    if (r == 0)
        start_signals();
    if (r == 0 && options.retransform)
        start_retransform(ti, env);
}

struct top {
    char *name;
    unsigned count;
};

static int by_count(const void *a, const void *b)
{
    return (int)((const struct top *)b)->count - (int)((const struct top *)a)->count;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report_costs(FILE *f, const char *what, const uint32_t *of)
{
    static uint32_t all[COSTS_MAX], deep[COSTS_MAX];
    uint32_t taken_n = sample_count < COSTS_MAX ? sample_count : COSTS_MAX, n = 0, kept = 0;
    for (uint32_t i = 0; i < taken_n; i++) {
        unsigned depth = of[i] & 0xfff;
        if (of[i] == 0)
            continue;
        all[n++] = of[i] >> 12;
        if (depth >= 45 && depth <= 55)
            deep[kept++] = of[i] >> 12;
    }
    qsort(all, n, sizeof(all[0]), by_value);
    qsort(deep, kept, sizeof(deep[0]), by_value);
    fprintf(f, "%s_median_ns=%u\n%s_p99_ns=%u\n%s_depth50_median_ns=%u\n%s_depth50_count=%u\n",
            what, n ? all[n / 2] : 0, what, n ? all[n * 99 / 100] : 0, what,
            kept ? deep[kept / 2] : 0, what, kept);
}

static void dump_sample(FILE *f, const struct sample *s)
{
    fprintf(f, "sample status=%u recovered=%d pc=%llx sp=%llx frames=%u oracle=%d\n", s->end.status,
            s->end.recovered, (unsigned long long)s->end.pc, (unsigned long long)s->end.sp,
            s->total, s->oracle_count);
    char stub[64];
    walker_stub_name(names.walker, s->pc, stub, sizeof(stub));
    fprintf(f, "  at pc=%llx sp=%llx fp=%llx %s |", (unsigned long long)s->pc,
            (unsigned long long)s->sp, (unsigned long long)s->fp, stub);
    for (size_t i = 0; i < sizeof(s->code); i++)
        fprintf(f, "%s%02x", i == 24 ? " > " : " ", s->code[i]);
    walker_stub_name(names.walker, s->end.pc, stub, sizeof(stub));
    fprintf(f, "\n  ended in %s\n", stub);
    for (size_t i = 0; i < ARRAY_SIZE(s->stack); i++) {
        walker_stub_name(names.walker, s->stack[i], stub, sizeof(stub));
        if (stub[0] || (options.dump > 500 && s->sp + 8 * i >= s->end.sp))
            fprintf(f, "  stack %zu %llx %s\n", i, (unsigned long long)s->stack[i], stub);
    }
    for (unsigned i = 0; i < s->count && i < 24; i++) {
        char *name = name_of_walked(&names, &s->frames[i]);
        fprintf(f, "  walked %u %s@%d\n", s->frames[i].kind, name, s->frames[i].bci);
        free(name);
    }
    for (int i = 0; i < s->oracle_count && i < 12 && i < KEPT_FRAMES; i++) {
        char *name = name_of_method_id(&names, s->oracle[i].method_id);
        fprintf(f, "  oracle %s@%d\n", name, s->oracle[i].lineno);
        free(name);
    }
}

static const struct walk_frame *first_java(const struct sample *s)
{
    for (unsigned i = 0; i < s->count; i++)
        if (walk_is_java(s->frames[i].kind))
            return &s->frames[i];
    return NULL;
}

/*
 * Returns true when the oracle's top frame is one of our outer ones. It takes the caller for the
 * top frame where a frame has not been built yet or has already been removed.
 */
static int omits_top(const struct sample *s, const struct walk_frame *first)
{
    char *b = name_of_method_id(&names, s->oracle[0].method_id);
    int same = 0;
    for (const struct walk_frame *f = first + 1;
         f < s->frames + s->count && f <= first + 8 && !same; f++) {
        char *a = walk_is_java(f->kind) ? name_of_walked(&names, f) : NULL;
        same = a && b && same_name(a, b);
        free(a);
    }
    free(b);
    return same && s->total > (unsigned)s->oracle_count;
}

/*
 * Compares what both could walk: the top frame, its bytecode index, and every frame that was kept.
 * Only samples that interrupted Java code itself count, because for a compiled frame that called
 * the VM, AsyncGetCallTrace describes the instruction after the call.
 */
static void report_differences(FILE *f)
{
    unsigned compared = 0, top_wrong = 0, omitted = 0, bci_wrong = 0, stack_wrong = 0, none = 0,
             dumped = 0;
    uint32_t n = sample_count < SAMPLES_MAX ? sample_count : SAMPLES_MAX;
    for (uint32_t i = 0; i < n; i++) {
        struct sample *s = &samples[i];
        char stub[64];
        walker_stub_name(names.walker, s->pc, stub, sizeof(stub));
        int in_java = strcmp(stub, "nmethod") == 0 || strcmp(stub, "Interpreter") == 0;
        if (s->oracle_count <= 0 || s->oracle[0].method_id == NULL || !in_java)
            continue;
        compared++;
        const struct walk_frame *first = first_java(s);
        if (!first) {
            none++;
            top_wrong++;
            if (dumped++ < (unsigned)options.dump)
                dump_sample(f, s);
            continue;
        }
        char *a = name_of_walked(&names, first),
             *b = name_of_method_id(&names, s->oracle[0].method_id);
        int same_top = a && b && same_name(a, b), same = same_top;
        bci_wrong += same_top && first->bci != s->oracle[0].lineno;
        free(a);
        free(b);
        int k = 1;
        for (unsigned j = (unsigned)(first - s->frames) + 1;
             same && j < s->count && k < s->oracle_count && k < KEPT_FRAMES; j++) {
            if (!walk_is_java(s->frames[j].kind))
                continue;
            a = name_of_walked(&names, &s->frames[j]);
            b = name_of_method_id(&names, s->oracle[k++].method_id);
            same = a && b && same_name(a, b);
            free(a);
            free(b);
        }
        int omits = !same_top && omits_top(s, first);
        omitted += omits;
        top_wrong += !same_top && !omits;
        stack_wrong += !same && !omits;
        if (omits)
            continue;
        if (!same && dumped++ < (unsigned)options.dump)
            dump_sample(f, s);
    }
    fprintf(f,
            "omitted=%u\ncompared=%u\ntop_wrong=%u\nbci_wrong=%u\nstack_wrong=%u\nno_java=%"
            "u\noracle_failed=%llu\n",
            omitted, compared, top_wrong, bci_wrong, stack_wrong, none,
            (unsigned long long)oracle_failed);
}

static void report_tops(FILE *f)
{
    static struct top tops[4096];
    unsigned distinct = 0, unloaded = 0, total = 0;
    uint32_t n = sample_count < SAMPLES_MAX ? sample_count : SAMPLES_MAX;
    for (uint32_t i = 0; i < n; i++) {
        const struct walk_frame *first = first_java(&samples[i]);
        if (!first)
            continue;
        char *name = name_of_walked(&names, first);
        total++;
        unloaded += name && strcmp(name, "[unloaded]") == 0;
        unsigned k = 0;
        while (k < distinct && strcmp(tops[k].name, name ? name : "?") != 0)
            k++;
        if (k == distinct && distinct < 4096)
            tops[distinct++] = (struct top){name ? name : strdup("?"), 0};
        else
            free(name);
        if (k < 4096)
            tops[k].count++;
    }
    qsort(tops, distinct, sizeof(tops[0]), by_count);
    fprintf(f, "tops_total=%u\nunloaded=%u\n", total, unloaded);
    for (unsigned k = 0; k < distinct && k < (unsigned)options.tops; k++)
        fprintf(f, "top %u %s\n", tops[k].count, tops[k].name);
}

/* Writes the first stacks completely, one on each line, innermost frame first. */
static void report_stacks(FILE *f)
{
    uint32_t n = sample_count < SAMPLES_MAX ? sample_count : SAMPLES_MAX;
    for (uint32_t i = 0; i < n && i < (unsigned)options.stacks; i++) {
        fprintf(f, "stack %u ", samples[i].end.status);
        for (unsigned k = 0; k < samples[i].count; k++) {
            char *name = name_of_walked(&names, &samples[i].frames[k]);
            fprintf(f, "%s%s", k ? ";" : "", name ? name : "?");
            free(name);
        }
        fprintf(f, "\n");
    }
}

static void report_failures(FILE *f)
{
    unsigned dumped = 0;
    uint32_t n = sample_count < SAMPLES_MAX ? sample_count : SAMPLES_MAX;
    for (uint32_t i = 0; i < n && dumped < (unsigned)options.dump; i++)
        if (samples[i].end.status >= WALK_BROKEN || samples[i].end.recovered) {
            dumped++;
            dump_sample(f, &samples[i]);
        }
}

static void JNICALL on_death(jvmtiEnv *ti, JNIEnv *env)
{
    stopping = 1;
    struct itimerval off = {0};
    setitimer(ITIMER_VIRTUAL, &off, NULL);
    if (names.walker && options.later)
        drain();
    names.symbols = symbols_new();
    FILE *f = fopen(options.out, "w");
    if (!f)
        return;
    if (!names.walker) {
        fprintf(f, "refused=%s\n", why);
        fclose(f);
        return;
    }
    static const char *const statuses[] = {"complete", "depth", "heap", "broken", "fault"};
    fprintf(f, "version=%d\ntaken=%llu\nlater=%llu\nbusy=%llu\n",
            walker_layout(names.walker)->version, (unsigned long long)taken,
            (unsigned long long)later_taken, (unsigned long long)busy);
    for (unsigned i = 0; i < WALK_STATUSES; i++)
        fprintf(f, "%s=%llu\n", statuses[i], (unsigned long long)status_counts[i]);
    fprintf(f, "retransformed=%u\ndeepest=%u\n", retransformed, deepest);
    fprintf(f, "recovered=%llu\nfaults=%llu\n", (unsigned long long)recovered_count,
            (unsigned long long)walker_faults());
    for (unsigned i = 0; i < WALK_KINDS; i++)
        fprintf(f, "kind%u=%d\n", i, kinds_seen[i]);
    report_costs(f, "cost", costs);
    report_costs(f, "later", later_costs);
    report_costs(f, "oracle", oracle_costs);
    report_failures(f);
    if (options.compare)
        report_differences(f);
    report_tops(f);
    report_stacks(f);
    fclose(f);
}

static void parse(char *text)
{
    const struct {
        const char *name;
        long *value;
    } numbers[] = {{"interval", &options.interval}, {"compare", &options.compare},
                   {"native", &options.native},     {"later", &options.later},
                   {"depth", &options.depth},       {"tops", &options.tops},
                   {"dump", &options.dump},         {"retransform", &options.retransform},
                   {"stacks", &options.stacks}};

    char *rest = NULL;
    for (char *word = text ? strtok_r(text, ",", &rest) : NULL; word;
         word = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(word, '=');
        if (!value)
            continue;
        *value++ = 0;
        if (strcmp(word, "out") == 0)
            snprintf(options.out, sizeof(options.out), "%s", value);
        if (strcmp(word, "mode") == 0)
            snprintf(options.mode, sizeof(options.mode), "%s", value);
        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
            if (strcmp(word, numbers[i].name) == 0)
                *numbers[i].value = atol(value);
    }
    options.depth = MIN(options.depth, DEPTH_MAX);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *text, void *reserved)
{
    parse(text);
    samples = mmap(NULL, SAMPLES_MAX * sizeof(*samples), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    costs = calloc(COSTS_MAX, sizeof(*costs));
    later_costs = calloc(COSTS_MAX, sizeof(*costs));
    for (int i = 0; i < BUFFERS; i++) {
        buffers[i] = malloc(DEPTH_MAX * sizeof(struct walk_frame));
        oracle_buffers[i] = malloc(DEPTH_MAX * sizeof(AsgctFrame));
    }
    if ((*vm)->GetEnv(vm, (void **)&names.jvmti, JVMTI_VERSION_1_2) != JNI_OK)
        return JNI_ERR;
    jvmtiCapabilities capabilities = {.can_generate_compiled_method_load_events = 1,
                                      .can_retransform_classes = options.retransform > 0};
    (*names.jvmti)->AddCapabilities(names.jvmti, &capabilities);
    jvmtiEventCallbacks callbacks = {.VMInit = on_init,
                                     .VMDeath = on_death,
                                     .ThreadStart = on_thread_start,
                                     .ThreadEnd = on_thread_end,
                                     .ClassLoad = on_class_load,
                                     .ClassPrepare = on_class_prepare,
                                     .CompiledMethodLoad = on_compiled};
    (*names.jvmti)->SetEventCallbacks(names.jvmti, &callbacks, sizeof(callbacks));
    const jvmtiEvent events[] = {JVMTI_EVENT_VM_INIT,
                                 JVMTI_EVENT_VM_DEATH,
                                 JVMTI_EVENT_THREAD_START,
                                 JVMTI_EVENT_THREAD_END,
                                 JVMTI_EVENT_CLASS_PREPARE,
                                 JVMTI_EVENT_CLASS_LOAD,
                                 JVMTI_EVENT_COMPILED_METHOD_LOAD};
    for (size_t i = 0; i < ARRAY_SIZE(events); i++)
        (*names.jvmti)->SetEventNotificationMode(names.jvmti, JVMTI_ENABLE, events[i], NULL);
    return 0;
}
