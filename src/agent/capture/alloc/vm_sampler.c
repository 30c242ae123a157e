/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/alloc/vm_sampler.h"

#include "agent/session/budget.h"
#include "agent/vm/flags.h"
#include "agent/vm/image.h"
#include "hotspot/memory.h"
#include "hotspot/tables.h"
#include "hotspot/thread_bytes.h"

#include <pthread.h>
#include <string.h>

enum { WORD = 8, OFFSET_MAX = 16 << 10, BEFORE_25 = 24, AGREED = 3, LEAST = 4096 };

/* Offsets of fields, in bytes; those of a buffer are from the beginning of the thread. */
static struct {
    int64_t env; /* of the JNI environment in a thread; 0: unknown, and nothing here works */
    int64_t size, buffer, start, top, end, desired, refills, waste, allocated;
    bool buffers;             /* the fields of buffers are known, and unused rests can be counted */
    bool counts;              /* the fields that hold what a thread has allocated are known */
    _Atomic int64_t distance; /* of the number of bytes until the next sample; 0: not found yet */
} at;

/*
 * The bytes that each thread had allocated when counting began, and what threads that have ended
 * had allocated since then. A thread whose start was not seen is not counted. Entries of the thread
 * table are reused, so each figure has the serial of the thread that it belongs to.
 */
static struct {
    pthread_mutex_t lock;
    uint64_t ended;
    uint64_t from[THREADS_MAX];
    uint32_t serial[THREADS_MAX]; /* 0: not counted */
} count = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The unused bytes of the buffer that the last collection took from each thread. */
static uint32_t rests[THREADS_MAX];

static int learn(void *context, const struct table_entry *e)
{
    static const struct {
        const char *type, *name;
        int64_t *ret;
    } fields[] = {
        {"JavaThread", "", &at.size},
        {"Thread", "_tlab", &at.buffer},
        {"Thread", "_allocated_bytes", &at.allocated},
        {"ThreadLocalAllocBuffer", "_start", &at.start},
        {"ThreadLocalAllocBuffer", "_top", &at.top},
        {"ThreadLocalAllocBuffer", "_end", &at.end},
        {"ThreadLocalAllocBuffer", "_desired_size", &at.desired},
        {"ThreadLocalAllocBuffer", "_number_of_refills", &at.refills},
        {"ThreadLocalAllocBuffer", "_slow_refill_waste", &at.waste}, /* JDK 11 */
        {"ThreadLocalAllocBuffer", "_refill_waste", &at.waste},
    };

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (e->kind == (fields[i].name[0] ? TABLE_FIELD : TABLE_TYPE) &&
            strcmp(e->type, fields[i].type) == 0 && strcmp(e->name, fields[i].name) == 0)
            *fields[i].ret = e->value;
    return 0;
}

void vm_sampler_find(JNIEnv *jni)
{
    /*
     * With -Xcheck:jni the VM prints on the program's output that a signal handler was replaced, so
     * no handler is installed then.
     */
    if (at.env || !vm.hotspot || vm.version < 11 || vm_flag("CheckJNICalls") ||
        memory_guard_init() < 0 || hotspot_tables_visit(&vm_image, learn, NULL) < 0)
        return;
    uint64_t thread = vm_thread_address(jni, NULL);
    int64_t env = thread ? (int64_t)((uint64_t)(uintptr_t)jni - thread) : 0;
    /* The VM keeps a buffer's real end between the end that it compares with and the next field. */
    at.buffers = vm.version <= BEFORE_25 && at.buffer > 0 && at.desired == at.end + 2 * WORD &&
                 at.top > at.start && at.refills > at.desired && at.waste > at.desired;
    at.counts = at.buffer > 0 && at.allocated > 0 && at.end > at.start && at.top > at.start;
    if (env > 0 && env < at.size && at.size < OFFSET_MAX)
        at.env = env;
}

static char *thread_of(JNIEnv *env)
{
    return (char *)env - at.env;
}

/*
 * These loads may fail: the table may list a thread that ended while it was being added, and whose
 * memory the VM has released. They return 0 then.
 */
static uint64_t word_at(const char *place)
{
    uint64_t value = 0;
    (void)load_u64(&process_memory, (uint64_t)(uintptr_t)place, &value);
    return value;
}

static uint32_t half_at(const char *place)
{
    uint32_t value = 0;
    (void)load_u32(&process_memory, (uint64_t)(uintptr_t)place, &value);
    return value;
}

/* The natural logarithm of a positive number, without libm. */
static double logarithm(double x)
{
    const double ln_2 = 0.6931471805599453;
    int exponent = 0;
    for (; x >= 2; x /= 2)
        exponent++;
    for (; x < 1; x *= 2)
        exponent--;
    double t = (x - 1) / (x + 1), square = t * t, sum = 0;
    for (int i = 25; i > 0; i -= 2)
        sum = sum * square + 1.0 / i;
    return 2 * t * sum + exponent * ln_2;
}

static uint64_t draw(uint64_t interval)
{
    double u = (double)((budget_random() >> 11) + 1) / (double)(UINT64_C(1) << 53);
    return (uint64_t)(-logarithm(u) * (double)interval) + 1;
}

/*
 * The first distance of a thread whose sampler is at this address. The generator is that of
 * lrand48(), of which the upper 26 bits are used; the logarithm is taken from a table of 1,024
 * values between one power of two and the next.
 */
static double first_distance(uint64_t address, uint64_t interval)
{
    const double ln_2 = 0.6931471805599453;
    uint64_t seed = (uint32_t)address ? (uint32_t)address : 1;
    uint64_t drawn = (UINT64_C(0x5deece66d) * seed + 11) & ((UINT64_C(1) << 48) - 1);
    double q = (double)(drawn >> 22) + 1;
    int exponent = 0;
    for (; q >= 2; q /= 2)
        exponent++;
    double step = (double)(int)((q - 1) * 1024);
    double log_2 = exponent + logarithm(1 + (step + 0.5) / 1024) / ln_2 - 26;
    return log_2 < 0 ? -log_2 * ln_2 * (double)interval + 1 : 1;
}

/*
 * Returns whether a word of a thread's sampler can be the first distance. The VM rounds down. Small
 * numbers, which are common, prove nothing.
 */
static bool is_first(const char *place, uint64_t interval)
{
    double found = (double)word_at(place);
    if (!interval || found < LEAST)
        return false;
    double known = first_distance((uint64_t)(uintptr_t)place, interval);
    return found > known - 1.01 && found < known + 0.01;
}

/*
 * Returns the offset of the distance in a thread, or 0. The distance is the first field of the
 * thread's sampler, and its value is computed from the address of the sampler.
 */
static int64_t find_distance(const char *thread, uint64_t now, uint64_t before)
{
    for (int64_t i = WORD; i <= at.size - WORD; i += WORD)
        if (is_first(thread + i, now) || is_first(thread + i, before))
            return i;
    return 0;
}

/*
 * Learns the offset of the distance from a new thread. In one of some ten thousand threads another
 * number looks like the first distance, so the offset is used only when several threads in a row
 * agree on it. Requires count.lock.
 */
static void learn_distance(const char *thread, uint64_t now, uint64_t before)
{
    static int64_t candidate;
    static int agreed;
    if (atomic_load(&at.distance))
        return;
    int64_t found = find_distance(thread, now, before);
    agreed = found && found == candidate ? agreed + 1 : found != 0;
    candidate = found;
    if (agreed == AGREED)
        atomic_store(&at.distance, candidate);
}

static void set_distance(JNIEnv *jni, uint64_t interval)
{
    int64_t offset = atomic_load_explicit(&at.distance, memory_order_relaxed);
    if (offset && interval) {
        char *place = thread_of(jni) + offset;
        __atomic_store_n((uint64_t *)(void *)place, draw(interval), __ATOMIC_RELAXED);
    }
}

static uint64_t allocated_by(const char *thread)
{
    struct thread_bytes_at fields = {.allocated = at.allocated,
                                     .start = at.buffer + at.start,
                                     .top = at.buffer + at.top,
                                     .end = at.buffer + at.end};
    return at.counts ? thread_bytes(&process_memory, (uint64_t)(uintptr_t)thread, &fields) : 0;
}

/* Begins to count the bytes that a thread allocates. Requires count.lock. */
static void count_from_now(const struct thread *t, const char *thread)
{
    uint32_t index = thread_index(t);
    count.from[index] = allocated_by(thread);
    count.serial[index] = t->own ? 0 : atomic_load(&t->serial);
}

/*
 * Returns the bytes that a thread has allocated since counting began; 0 for a thread that is not
 * counted, also if the memory of an ended thread now belongs to another one. Requires count.lock.
 */
static uint64_t counted_of(const struct thread *t, const char *thread)
{
    uint32_t index = thread_index(t), serial = count.serial[index];
    if (!serial || serial != atomic_load(&t->serial))
        return 0;
    uint64_t bytes = allocated_by(thread);
    return bytes - MIN(bytes, count.from[index]);
}

bool vm_sampler_count(void)
{
    /*
     * set after the first use: a new table is zeroed already, and clearing it would touch 64 pages
     */
    static bool used;
    pthread_mutex_lock(&count.lock);
    count.ended = 0;
    if (used)
        memset(count.serial, 0, sizeof(count.serial));
    used = true;
    for (struct thread *t = NULL; at.env && (t = threads_next(t));) {
        JNIEnv *env = atomic_load(&t->env);
        if (env)
            count_from_now(t, thread_of(env));
    }
    pthread_mutex_unlock(&count.lock);
    return at.env && at.counts;
}

void vm_sampler_thread_ended(const struct thread *t, JNIEnv *jni)
{
    pthread_mutex_lock(&count.lock);
    if (at.env) {
        count.ended += counted_of(t, thread_of(jni));
        count.serial[thread_index(t)] = 0;
    }
    pthread_mutex_unlock(&count.lock);
}

bool vm_sampler_counted(uint64_t *ret)
{
    if (!at.env || !at.counts)
        return false;
    pthread_mutex_lock(&count.lock);
    uint64_t sum = count.ended;
    for (struct thread *t = NULL; (t = threads_next(t));) {
        /* A thread needs this lock to end, so its entry cannot be reused meanwhile. */
        JNIEnv *env = atomic_load(&t->env);
        if (env)
            sum += counted_of(t, thread_of(env));
    }
    pthread_mutex_unlock(&count.lock);
    *ret = sum;
    return true;
}

void vm_sampler_thread(const struct thread *t, JNIEnv *jni, uint64_t now, uint64_t before)
{
    if (!at.env)
        return;
    rests[thread_index(t)] = 0;
    pthread_mutex_lock(&count.lock);
    count_from_now(t, thread_of(jni));
    learn_distance(thread_of(jni), now, before);
    pthread_mutex_unlock(&count.lock);
    set_distance(jni, now);
}

void vm_sampler_next(JNIEnv *jni, uint64_t interval)
{
    if (at.env)
        set_distance(jni, interval);
}

/*
 * Estimates the unused bytes of the last buffer that the thread gave up: the average over the
 * `times` buffers that it gave up itself since the last collection.
 */
static uint32_t given_up(const char *buffer, uint32_t times)
{
    return (uint32_t)((uint64_t)half_at(buffer + at.waste) * WORD / times);
}

void JNICALL vm_sampler_collection(jvmtiEnv *ti)
{
    if (!at.env || !at.buffers)
        return;
    for (struct thread *t = NULL; (t = threads_next(t));) {
        JNIEnv *env = atomic_load(&t->env);
        const char *buffer = env ? thread_of(env) + at.buffer : NULL;
        if (!buffer)
            continue;
        /*
         * The thread has no buffer and got none since the last collection, so the rest that was
         * stored then has not been counted yet.
         */
        if (word_at(buffer + at.end))
            rests[thread_index(t)] =
                (uint32_t)(word_at(buffer + at.desired - WORD) - word_at(buffer + at.top));
        else if (half_at(buffer + at.refills))
            rests[thread_index(t)] = given_up(buffer, half_at(buffer + at.refills));
    }
}

uint64_t vm_sampler_rest(const struct thread *t, JNIEnv *jni, uint64_t size)
{
    if (!at.env || !at.buffers)
        return 0;
    const char *buffer = thread_of(jni) + at.buffer;
    if (word_at(buffer + at.top) - word_at(buffer + at.start) != size)
        return 0; /* not the first object in the buffer */
    uint32_t refills = half_at(buffer + at.refills);
    return refills <= 1 ? rests[thread_index(t)] : given_up(buffer, refills - 1);
}
