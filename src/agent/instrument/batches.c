/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/batches.h"

#include "agent/instrument/pauses.h"
#include "agent/instrument/stops.h"
#include "agent/vm/vm.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/map.h"
#include "classfile/classfile.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/*
 * A batch stops all threads once, and the VM visits all its classes, threads and compiled code.
 * Measurements: JDK 17 and 21 visit them once per batch, which takes as long as a few hundred
 * classes, and longer the more classes were changed before. JDK 8 visits them for each class, 3 to
 * 6 ms each time; JDK 11 does part of it for each class (3 ms) and more for each batch (6 ms). At
 * start-up the program is not running yet, so the length of a batch does not matter. Batch sizes
 * are not adapted while the work goes on: on a busy machine that would end in batches of one class,
 * which take far too long.
 */
enum { AT_START_UP = 256, AT_ONCE = 128, AT_ONCE_9_TO_12 = 4, AT_ONCE_8 = 1 };

#define SLICE_NS (20 * NS_PER_MS)

static atomic_bool ending;
static atomic_int waiters;        /* threads that wait for the work in progress */
static _Atomic uint64_t progress; /* done << 32 | of; 0: no work is in progress */
static struct pauses shared;      /* by the rounds of a start or an end */

void batches_rounds(unsigned n)
{
    shared = (struct pauses){.rounds = n};
}

bool batches_progress(int *ret_done, int *ret_of)
{
    uint64_t now = progress;
    *ret_done = (int)(now >> 32);
    *ret_of = (int)(uint32_t)now;
    return now != 0;
}

void batches_skip_pauses(bool on)
{
    atomic_fetch_add(&waiters, on ? 1 : -1);
}

void batches_end(void)
{
    ending = true;
}

bool batches_ended(void)
{
    return atomic_load(&ending);
}

bool batches_rest(JNIEnv *jni, void (*pause)(JNIEnv *jni), uint64_t ns)
{
    uint64_t start = now_ns();
    do {
        if (pause)
            pause(jni);
        nanosleep(&(struct timespec){.tv_nsec = (long)MIN(ns, SLICE_NS)}, NULL);
    } while (!ending && !waiters && now_ns() - start < ns);
    return !ending;
}

void batches_run(JNIEnv *jni, const struct batches *b, const jclass *classes, int n)
{
    bool paced = vm.attached;
    int size = !paced             ? AT_START_UP
               : vm.version >= 13 ? AT_ONCE
               : vm.version >= 9  ? AT_ONCE_9_TO_12
                                  : AT_ONCE_8;
    /*
     * Where a batch is a few classes, its pause is short already. Restoring the classes of a
     * recording that has ended is nobody's round.
     */
    bool shares = size == AT_ONCE && b->progress && shared.rounds;
    const struct pauses own = {.rounds = 1};
    uint64_t whole = pauses_of_round(shares ? &shared : &own, (unsigned)n);
    uint64_t budget = whole;
    for (int i = 0, count; i < n && !(paced && ending); i += count) {
        uint64_t start = now_ns(), before = 0, after = 0;
        bool reported = paced && stops_so_far(&before);
        count = MIN(size, n - i);
        if (!b->transform(classes + i, count))
            for (int k = 0; k < count; k++)
                b->one(classes[i + k]);
        vm_clear_exception(jni);
        progress = (uint64_t)(i + count) << 32 | (uint32_t)n;
        if (b->progress)
            b->progress(i + count, n);
        if (!paced || i + count >= n)
            continue;
        uint64_t took = now_ns() - start;
        uint64_t stop = reported && stops_so_far(&after) ? after - before : took;
        uint64_t batches = (uint64_t)((n - i - count + size - 1) / size);
        batches_rest(jni, b->pause, pauses_next(&budget, stop, took, batches));
    }
    if (shares)
        shared.used_ns += whole - budget;
    progress = 0;
}

/*
 * UNSEEN: how often a class may be transformed before its constant pool is checked. MORE: how many
 * more times until the next check. POOL_MOST: the limit of the pool.
 */
enum { UNSEEN = 4, MORE = 9, POOL_MOST = 60000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map times; /* hash of a class name -> number of transformations */
static _Atomic uint64_t left;

static bool is_nan(unsigned tag, uint64_t bits)
{
    return tag == CONSTANT_FLOAT ? (bits & 0x7fffffff) > 0x7f800000
                                 : (bits & INT64_MAX) > UINT64_C(0x7ff0000000000000);
}

/* Counts the NaNs in a constant pool in the form that GetConstantPool returns. */
static uint64_t count_nans(const unsigned char *bytes, jint len)
{
    struct cursor in = cursor_of(bytes, (size_t)len);
    uint64_t n = 0;
    while (cursor_left(&in) && !in.failed) {
        unsigned tag = cursor_u8(&in);
        switch (tag) {
        case CONSTANT_FLOAT:
            n += is_nan(tag, cursor_be32(&in));
            break;
        case CONSTANT_DOUBLE:
            n += is_nan(tag, cursor_be64(&in));
            break;
        case CONSTANT_LONG:
            cursor_be64(&in);
            break;
        case CONSTANT_UTF8:
            cursor_skip(&in, cursor_be16(&in));
            break;
        case CONSTANT_CLASS:
        case CONSTANT_STRING:
        case CONSTANT_METHOD_TYPE:
        case CONSTANT_MODULE:
        case CONSTANT_PACKAGE:
            cursor_be16(&in);
            break;
        case CONSTANT_METHOD_HANDLE:
            cursor_skip(&in, 3);
            break;
        default:
            cursor_be32(&in);
        }
    }
    return n;
}

static bool pool_has_room(jclass class)
{
    unsigned char *bytes = NULL;
    jint n = 0, len = 0;
    if ((*vm.ti)->GetConstantPool(vm.ti, class, &n, &len, &bytes) != JVMTI_ERROR_NONE)
        return true;
    bool has = (uint64_t)n + (count_nans(bytes, len) << MORE) < POOL_MOST;
    vm_free(bytes);
    return has;
}

bool batches_may_transform(jclass class, struct str name, bool back)
{
    pthread_mutex_lock(&lock);
    uint64_t *n = map_at(&times, hash_bytes(name.data, name.len), 0, NULL);
    uint64_t before = n ? (*n)++ : UNSEEN;
    pthread_mutex_unlock(&lock);
    bool may = back || before < UNSEEN || pool_has_room(class);
    left += !may;
    return may;
}

uint64_t batches_left(void)
{
    return left;
}
