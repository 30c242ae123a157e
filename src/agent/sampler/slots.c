/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/slots.h"

#include "agent/common/fault.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/mapped.h"
#include "base/waker.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SLOTS_MAX = THREADS_MAX,
    DESCRIPTORS_MAX = 2 * SLOTS_MAX,
    SHIFT_EVERY = 4,          /* in intervals */
    PERF_SHORTEST_NS = 20000, /* the kernel accepts no less than 10,000 */
    ENDED = -1, /* the tid of a slot whose thread has ended and whose intervals are not settled */
};

static struct sampler_slot *slots;
static _Atomic uint32_t slots_used;
static _Atomic uint32_t *by_descriptor; /* 1 + the index of the descriptor's slot */
/* protects the adding and removal of slots, and their timers */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slots_options options;
static bool active; /* protected by lock */
static _Atomic uint64_t uncovered;
static uint64_t java_ns; /* CPU time of slots that have been removed; protected by lock */

static pthread_t visitor;
static atomic_bool visitor_exists, visitor_stop;
static struct waker visitor_waker; /* visitor_stop is set */

/* ---- in the signal handler ---- */

at_each_sample struct sampler_slot *slot_by_address(const void *address)
{
    uintptr_t distance = (uintptr_t)address - (uintptr_t)slots;
    if (distance >= atomic_load(&slots_used) * sizeof(*slots) || distance % sizeof(*slots))
        return NULL;
    return &slots[distance / sizeof(*slots)];
}

struct sampler_slot *slot_by_tid(pid_t tid)
{
    uint32_t used = atomic_load(&slots_used);
    for (uint32_t i = 0; i < used; i++)
        if (atomic_load(&slots[i].tid) == tid)
            return &slots[i];
    return NULL;
}

at_each_sample bool slot_is_own(struct sampler_slot *s)
{
    void *self = __builtin_thread_pointer();
    if (likely(s->self == self))
        return true;
    if (atomic_load(&s->tid) != (pid_t)syscall(SYS_gettid))
        return false;
    s->self = self;
    return true;
}

at_each_sample struct sampler_slot *slot_by_descriptor(int fd)
{
    uint32_t place = fd > 0 && fd < DESCRIPTORS_MAX ? atomic_load(&by_descriptor[fd]) : 0;
    return place ? &slots[place - 1] : NULL;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / NS_PER_SECOND), (long)(ns % NS_PER_SECOND)};
}

at_each_sample void slot_shift(struct sampler_slot *s, uint32_t weight)
{
    if (!s->has_timer || options.wall || atomic_load(&s->none))
        return;
    s->since += weight;
    if (s->since < SHIFT_EVERY) {
        if (s->shifted)
            perf_clock_period(&s->perf, options.interval_ns);
        s->shifted = false;
        s->left_out = 0;
        return;
    }
    s->due_ns += s->since * options.interval_ns;
    s->since = 0;
    uint64_t at = s->due_ns + hash_u64(now_ns() ^ (uint64_t)s->tid) % options.interval_ns;
    if (s->perf.fd) {
        uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        /*
         * The next signal must not come soon: the period remains until the next handler ends, so a
         * short one would cause several signals at the same place. The next sample also stands for
         * the intervals that are left out, like those for which the kernel sent no signal.
         */
        uint64_t earliest = cpu_ns + options.interval_ns / 2;
        s->left_out = at < earliest ? (uint32_t)((earliest - at) / options.interval_ns + 1) : 0;
        perf_clock_period(&s->perf, at + s->left_out * options.interval_ns - cpu_ns);
        s->shifted = true;
    } else {
        struct itimerspec spec = {.it_interval = timespec_of(options.interval_ns),
                                  .it_value = timespec_of(at)};
        s->armed_ns = at;
        s->armed_ticks = atomic_load(&s->ticks);
        timer_settime(s->timer, TIMER_ABSTIME, &spec, NULL);
    }
}

at_each_sample struct thread *slot_thread(struct sampler_slot *slot)
{
    struct thread *t = atomic_load(&slot->thread);
    if (t || atomic_load(&slot->none))
        return t;
    JNIEnv *env = vm_jni();
    t = env ? threads_by_env(env) : NULL;
    if (t) {
        atomic_store(&t->tid, atomic_load(&slot->tid));
        atomic_store(&slot->serial, atomic_load(&t->serial));
        atomic_store(&slot->thread, t);
    } else {
        atomic_store(&slot->none, true);
    }
    return t;
}

/* ---- timers ---- */

/*
 * Clocks are numbered as in the kernel (include/linux/posix-timers_types.h: CPUCLOCK_SCHED, per
 * thread).
 */
clockid_t slot_clock(pid_t tid)
{
    return (clockid_t)(~(unsigned)tid << 3 | 6);
}

bool slot_is_open(pid_t tid)
{
    pthread_mutex_lock(&lock);
    struct sampler_slot *s = active ? slot_by_tid(tid) : NULL;
    bool open = s && !atomic_load(&s->none) && !atomic_load(&s->thread);
    pthread_mutex_unlock(&lock);
    return open;
}

static void forget_perf(struct sampler_slot *s)
{
    atomic_store(&by_descriptor[s->perf.fd], 0);
    perf_clock_stop(&s->perf);
}

/*
 * Returns false when the kernel refuses; the thread then gets a timer. The clock is started only
 * when everything that the first signal's handler needs is in place, because a handler that comes
 * too early would not set the period and no further signal would come.
 */
static bool arm_perf(struct sampler_slot *s, uint64_t first)
{
    perf_clock_release(&s->perf);
    if (!options.perf ||
        perf_clock_open(&s->perf, s->tid, options.signal, MAX(first, PERF_SHORTEST_NS)) < 0)
        return false;
    if (s->perf.fd >= DESCRIPTORS_MAX) {
        perf_clock_release(&s->perf);
        return false;
    }
    s->shifted = true;
    s->has_timer = true;
    atomic_store(&by_descriptor[s->perf.fd], (uint32_t)(s - slots) + 1);
    if (perf_clock_start(&s->perf) == 0)
        return true;
    forget_perf(s);
    s->has_timer = false;
    return false;
}

static void arm_timer(struct sampler_slot *s)
{
    /*
     * The first interval has a random length, so that short-lived threads get their share of
     * samples and threads are not sampled in step.
     */
    uint64_t interval = options.interval_ns,
             first = 1 + hash_u64(now_ns() ^ (uint64_t)s->tid) % interval;
    s->due_ns = s->begun_ns = clock_ns(slot_clock(s->tid));
    s->since = 0;
    s->has_timer = false;
    if (arm_perf(s, first))
        return;
    struct sigevent event = {
        .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = options.signal, .sigev_value.sival_ptr = s};
    event._sigev_un._tid = s->tid;
    if (timer_create(slot_clock(s->tid), &event, &s->timer) < 0) {
        /* RLIMIT_SIGPENDING is reached. From now on the visitor samples this thread. */
        atomic_fetch_add(&uncovered, 1);
        s->cpu_ns = s->due_ns + first - interval;
        s->seen = true;
        return;
    }
    struct itimerspec spec = {.it_interval = timespec_of(interval), .it_value = timespec_of(first)};
    s->has_timer = true;
    s->armed_ns = s->due_ns + first;
    s->armed_ticks = s->skips = 0;
    atomic_store(&s->ticks, 0);
    timer_settime(s->timer, 0, &spec, NULL);
}

/* Returns the CPU time of a slot's thread, or 0 if the thread is gone. */
static uint64_t read_clock(const struct sampler_slot *s)
{
    struct timespec t;
    if (clock_gettime(slot_clock(atomic_load(&s->tid)), &t) < 0)
        return 0;
    return MAX((uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec, s->begun_ns);
}

/*
 * Counts the intervals that no signal has reported. Otherwise each thread that runs for a fraction
 * of the kernel's tick at a time would lose a good part of an interval.
 */
static void count_unsignalled(struct sampler_slot *s)
{
    uint64_t interval = options.interval_ns, cpu_ns = read_clock(s), due = 0;
    /* Nothing is known about a thread that has ended or that may not be a Java thread. */
    if (!cpu_ns || !atomic_load(&s->serial))
        return;
    java_ns += cpu_ns - s->begun_ns;
    s->begun_ns = cpu_ns;
    if (s->has_timer && !s->perf.fd) {
        uint64_t ticks = atomic_load(&s->ticks) - s->armed_ticks;
        due = cpu_ns >= s->armed_ns ? (cpu_ns - s->armed_ns) / interval + 1 : 0;
        due -= MIN(due, ticks);
    } else if (!s->has_timer && s->seen) {
        due = (cpu_ns - s->cpu_ns) / interval;
    }
    s->unsignalled += (uint32_t)MIN(due, (uint64_t)INT32_MAX);
}

/* The ring remains until slots_release or until the slot is used again. */
static void disarm_timer(struct sampler_slot *s)
{
    if (!options.wall && !atomic_load(&s->none))
        count_unsignalled(s);
    if (s->perf.fd) {
        forget_perf(s);
    } else if (s->has_timer) {
        timer_delete(s->timer);
    } else if (!options.wall && atomic_load(&s->tid) && atomic_load(&uncovered) > 0) {
        atomic_fetch_sub(&uncovered, 1);
    }
    s->has_timer = false;
}

/*
 * Moves the timer's next tick to another point of its interval. Every interval since the timer was
 * created has had one tick.
 */
static void move_tick(struct sampler_slot *s)
{
    enum { LEAST_NS = 20000, SKIPS_MAX = 8 };

    uint64_t interval = options.interval_ns, cpu_ns = clock_ns(slot_clock(s->tid));
    struct itimerspec spec;
    if (timer_gettime(s->timer, &spec) < 0)
        return;
    uint64_t left =
                 (uint64_t)spec.it_value.tv_sec * NS_PER_SECOND + (uint64_t)spec.it_value.tv_nsec,
             next = cpu_ns + left;
    uint64_t at =
        next - (next - s->due_ns) % interval + hash_u64(now_ns() ^ (uint64_t)s->tid) % interval;
    uint64_t ticks = atomic_load(&s->ticks);
    /*
     * A tick that is due is delivered with the kernel's next tick, and one that has been delivered
     * may not be handled yet. Setting the timer would cancel both.
     */
    bool under_way = (next - s->armed_ns + interval / 2) / interval != ticks - s->armed_ticks &&
                     s->skips++ < SKIPS_MAX;
    if (under_way || left <= LEAST_NS || at <= cpu_ns + LEAST_NS)
        return;
    s->skips = 0;
    s->armed_ns = at;
    s->armed_ticks = ticks;
    spec = (struct itimerspec){.it_interval = timespec_of(interval), .it_value = timespec_of(at)};
    timer_settime(s->timer, TIMER_ABSTIME, &spec, NULL);
}

void slot_shift_later(struct sampler_slot *s, const struct thread *thread, uint32_t serial,
                      uint64_t mark, uint32_t weight, uint64_t round)
{
    pthread_mutex_lock(&lock);
    if (mark && atomic_load(&s->serial) == serial)
        atomic_store(&s->mark, mark);
    bool its = s->has_timer && !s->perf.fd && atomic_load(&s->thread) == thread;
    s->since += its ? weight : 0;
    if (its && s->since >= SHIFT_EVERY && s->shift_round != round) {
        s->since = 0;
        s->shift_round = round;
        move_tick(s);
    }
    pthread_mutex_unlock(&lock);
}

static void report_idle(struct sampler_slot *s)
{
    struct thread *t = atomic_load(&s->thread);
    uint64_t mark = atomic_load(&s->mark);
    if (s->repeated && t && mark && options.idle(options.context, t, mark, s->repeated))
        s->repeated = 0;
}

/* Wall: returns the intervals that have ended since those accounted for, and accounts for them. */
static uint32_t take_intervals(struct sampler_slot *s)
{
    uint64_t now = now_ns();
    uint64_t due = now > s->upto_ns ? (now - s->upto_ns) / options.interval_ns : 0;
    s->upto_ns += due * options.interval_ns;
    return (uint32_t)MIN(due, (uint64_t)INT32_MAX);
}

/*
 * Wall: accounts for the intervals that have ended since the last visit to a thread, which is not
 * visited again. Requires the lock.
 */
static void end_wall(struct sampler_slot *s)
{
    if (!atomic_load(&s->thread))
        return;
    uint32_t left = take_intervals(s) + atomic_exchange(&s->weight, 0);
    if (atomic_load(&s->mark) && atomic_load_explicit(&s->blocked, memory_order_relaxed))
        s->repeated += left;
    else
        s->unsignalled += left;
    report_idle(s);
}

/* ---- slots ---- */

/* Requires the lock. */
static void add_slot(pid_t tid, struct thread *t)
{
    struct sampler_slot *s = slot_by_tid(tid);
    uint32_t used = atomic_load(&slots_used), i = 0;
    if (!s) {
        while (i < used && atomic_load(&slots[i].tid))
            i++;
        if (!slots || i == SLOTS_MAX)
            return;
        s = &slots[i];
        perf_clock_release(&s->perf);
        *s = (struct sampler_slot){
            .tid = tid, .thread = t, .serial = t ? atomic_load(&t->serial) : 0};
        uint64_t now = now_ns();
        s->upto_ns = now - hash_u64(now ^ (uint64_t)tid) % options.interval_ns;
        if (i == used)
            atomic_store(&slots_used, used + 1);
    } else if (t) {
        /* A native thread has attached itself to the VM. */
        atomic_store(&s->serial, atomic_load(&t->serial));
        atomic_store(&s->thread, t);
        if (atomic_exchange(&s->none, false) && s->has_timer)
            disarm_timer(s); /* its clock has stopped */
    }
    if (!options.wall && !s->has_timer)
        arm_timer(s);
}

static void remove_slot(struct sampler_slot *s)
{
    disarm_timer(s);
    atomic_store(&s->thread, NULL);
    atomic_store(&s->none, true);
    atomic_store(&s->tid, s->unsignalled ? ENDED : 0);
}

/*
 * Reports the intervals of ended threads that no signal has reported. Samples taken before may
 * still have to be walked, so they wait for the second call, or the last one. Requires the lock.
 */
static void settle(struct sampler_slot *s, bool last)
{
    if (!s->unsignalled || atomic_load(&s->tid) != ENDED)
        return;
    if (!s->waited && !last) {
        s->waited = true;
        return;
    }
    uint64_t time_ns = atomic_load(&s->sampled_ns);
    options.unsignalled(options.context, atomic_load(&s->serial), atomic_load(&s->mark),
                        time_ns ? time_ns : now_ns(), s->unsignalled);
    s->unsignalled = 0;
    atomic_store(&s->tid, 0);
}

static void thread_started(struct thread *t, JNIEnv *jni, jthread thread)
{
    pid_t tid = atomic_load(&t->tid);
    pthread_mutex_lock(&lock);
    if (active && tid && !t->own)
        add_slot(tid, t);
    pthread_mutex_unlock(&lock);
}

static void thread_ended(struct thread *t, JNIEnv *jni)
{
    pthread_mutex_lock(&lock);
    struct sampler_slot *s = slot_by_tid(atomic_load(&t->tid));
    if (s) {
        if (options.wall)
            end_wall(s);
        remove_slot(s);
        perf_clock_release(&s->perf);
    }
    pthread_mutex_unlock(&lock);
}

static const struct thread_listener listener = {thread_started, thread_ended};

/*
 * Adds the Java threads. If the kernel id of one is unknown, because the VM does not provide it,
 * all threads of the process are added. Their first signals show which ones are Java threads; a
 * thread without a signal is never known to be one.
 */
static void add_all_tasks(void)
{
    bool all_known = true;
    for (struct thread *t = NULL; (t = threads_next(t));) {
        if (t->own)
            continue;
        if (t->tid)
            add_slot(t->tid, t);
        else
            all_known = false;
    }
    DIR *tasks = all_known ? NULL : opendir("/proc/self/task");
    if (!tasks)
        return;
    for (struct dirent *e; (e = readdir(tasks));) {
        pid_t tid = (pid_t)atoi(e->d_name);
        bool own = false;
        for (struct thread *t = NULL; (t = threads_next(t));)
            own = own || (t->own && t->tid == tid);
        if (tid > 0 && !own)
            add_slot(tid, NULL);
    }
    closedir(tasks);
}

/* ---- the visitor ---- */

static bool send(struct sampler_slot *s)
{
    siginfo_t info = {.si_signo = options.signal, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = s;
    return syscall(SYS_rt_tgsigqueueinfo, getpid(), s->tid, options.signal, &info) == 0;
}

/*
 * Handling our signal and going back to sleep takes less CPU time than this. A thread that was
 * running may have gone to sleep elsewhere within that time, so it is sampled again.
 */
#define SETTLE_NS UINT64_C(100000)

/*
 * Wall: a thread whose CPU clock has not advanced since the last visit is still doing the same. A
 * visit stands for all the intervals since the one before, whether these were many because there
 * are many threads or because the visitor woke up late. Requires the lock.
 */
static void visit_wall(struct sampler_slot *s)
{
    uint32_t weight = take_intervals(s);
    if (weight == 0)
        return;
    uint64_t cpu = clock_ns(slot_clock(s->tid)), used = cpu - s->cpu_ns;
    bool settles = s->settling && atomic_load_explicit(&s->blocked, memory_order_relaxed);
    bool idle = s->seen && used <= (settles ? SETTLE_NS : 0);
    s->cpu_ns = cpu;
    s->seen = true;
    s->settling = false;
    if (idle && atomic_load(&s->mark)) {
        s->repeated += weight;
        atomic_fetch_add(options.coalesced, 1);
        return;
    }
    report_idle(s);
    atomic_fetch_add(&s->weight, weight);
    s->settling = send(s);
}

/*
 * CPU: signals a thread without a timer if it has used an interval or more since its last signal.
 * Requires the lock.
 */
static void visit_cpu(struct sampler_slot *s)
{
    uint64_t cpu = clock_ns(slot_clock(s->tid));
    if (!s->seen || cpu < s->cpu_ns)
        s->cpu_ns = cpu;
    s->seen = true;
    uint64_t due = (cpu - s->cpu_ns) / options.interval_ns;
    if (due == 0)
        return;
    atomic_fetch_add(&s->weight, (uint32_t)due);
    s->cpu_ns += due * options.interval_ns;
    (void)send(s);
}

static bool to_visit(const struct sampler_slot *s)
{
    return atomic_load(&s->tid) > 0 && !atomic_load(&s->none) && (options.wall || !s->has_timer);
}

/*
 * The number of threads visited in a round, so that rounds take about a percent of a CPU with any
 * number of threads.
 */
enum { VISITS_A_ROUND = 64 };

/* Continues where the last round ended. Requires the lock. */
static void visit_some(uint32_t *at)
{
    uint32_t used = atomic_load(&slots_used), visits = 0;
    for (uint32_t i = 0; i < used && visits < VISITS_A_ROUND; i++, ++*at) {
        struct sampler_slot *s = &slots[*at % used];
        if (!to_visit(s))
            continue;
        visits++;
        if (options.wall)
            visit_wall(s);
        else
            visit_cpu(s);
    }
}

static void *visit(void *unused)
{
    uint32_t at = 0;
    while (!atomic_load(&visitor_stop)) {
        (void)waker_wait(&visitor_waker, options.interval_ns);
        if (!options.wall && atomic_load(&uncovered) == 0)
            continue;
        pthread_mutex_lock(&lock);
        if (active)
            visit_some(&at);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static int start_visitor(void)
{
    sigset_t all, old;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* base/backed.h */
    atomic_store(&visitor_stop, false);
    visitor_waker = (struct waker){0};
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = -pthread_create(&visitor, &attributes, visit, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    atomic_store(&visitor_exists, r == 0);
    return r;
}

/* ---- life ---- */

int slots_start(const struct slots_options *o)
{
    if (fault_here())
        return -ENOMEM;
    if (!by_descriptor && !(by_descriptor = mapped_new(DESCRIPTORS_MAX * sizeof(*by_descriptor))))
        return -ENOMEM;
    if (!slots && !(slots = mapped_new(SLOTS_MAX * sizeof(*slots))))
        return -ENOMEM;
    pthread_mutex_lock(&lock);
    options = *o;
    atomic_store(&uncovered, 0);
    java_ns = 0;
    active = true;
    pthread_mutex_unlock(&lock);
    int r = threads_listen(&listener);
    if (r < 0)
        return r;
    pthread_mutex_lock(&lock);
    add_all_tasks();
    pthread_mutex_unlock(&lock);
    return o->wall || atomic_load(&uncovered) ? start_visitor() : 0;
}

void slots_stop(void)
{
    if (!slots)
        return;
    pthread_mutex_lock(&lock);
    active = false;
    pthread_mutex_unlock(&lock);
    threads_unlisten(&listener);
    if (atomic_exchange(&visitor_exists, false)) {
        atomic_store(&visitor_stop, true);
        waker_wake(&visitor_waker);
        pthread_join(visitor, NULL);
    }
    pthread_mutex_lock(&lock);
    uint32_t used = atomic_load(&slots_used);
    for (uint32_t i = 0; i < used; i++) {
        if (atomic_load(&slots[i].tid) <= 0)
            continue;
        if (options.wall)
            end_wall(&slots[i]);
        remove_slot(&slots[i]);
    }
    pthread_mutex_unlock(&lock);
}

void slots_settle(void)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < atomic_load(&slots_used); i++)
        settle(&slots[i], true);
    pthread_mutex_unlock(&lock);
}

void slots_release(void)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < atomic_load(&slots_used); i++)
        perf_clock_release(&slots[i].perf);
    pthread_mutex_unlock(&lock);
}

void slots_work(void)
{
    pthread_mutex_lock(&lock);
    uint32_t used = atomic_load(&slots_used);
    for (uint32_t i = 0; i < used; i++) {
        struct sampler_slot *s = &slots[i];
        settle(s, false);
        if (atomic_load(&s->tid) <= 0)
            continue;
        if (atomic_load(&s->none) && s->has_timer)
            disarm_timer(s);
        else if (options.wall)
            report_idle(s);
    }
    bool need_visitor = active && atomic_load(&uncovered) > 0 && !atomic_load(&visitor_exists);
    pthread_mutex_unlock(&lock);
    if (need_visitor && start_visitor() < 0)
        atomic_store(&visitor_exists, false);
}

void slots_count(uint64_t *ret_threads, uint64_t *ret_uncovered)
{
    uint64_t n = 0;
    uint32_t used = atomic_load(&slots_used);
    for (uint32_t i = 0; i < used; i++)
        n += atomic_load(&slots[i].tid) > 0 && !atomic_load(&slots[i].none);
    *ret_threads = n;
    *ret_uncovered = atomic_load(&uncovered);
}

uint64_t slots_java_ns(void)
{
    pthread_mutex_lock(&lock);
    uint64_t sum = java_ns;
    for (uint32_t i = 0; i < atomic_load(&slots_used); i++) {
        const struct sampler_slot *s = &slots[i];
        bool java = atomic_load(&s->tid) > 0 && !atomic_load(&s->none) && atomic_load(&s->serial);
        uint64_t cpu_ns = java ? read_clock(s) : 0;
        sum += cpu_ns ? cpu_ns - s->begun_ns : 0;
    }
    pthread_mutex_unlock(&lock);
    return sum;
}
