/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor=y,park=y counts the time parked for locks and other synchronizers of java.util.concurrent
 * (parks whose blocker is an AbstractOwnableSynchronizer or a StampedLock) together with the
 * monitors by class, stack and thread. Waiting for a condition or a task is not contention, just as
 * Object.wait is not. Unsafe.park is bound to a function of ours.
 */
#include "agent/capture/monitors/monitors.h"
#include "agent/instrument/rebind.h"
#include "agent/stacks/names.h"
#include "agent/stacks/own_stack.h"
#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

typedef void(JNICALL *on_park)(JNIEnv *, jobject, jboolean, jlong);
typedef jobject(JNICALL *current_thread)(JNIEnv *, jclass);

enum { LOCKS = 2, PACKAGE_FRAMES = MONITORS_SKIP_MAX };

static struct {
    on_park real;
    current_thread current;
    jfieldID blocker;
    jclass locks[LOCKS];
    bool bound;
    _Atomic uint32_t on; /* number of the session that is counting; 0: none */
    _Atomic uint32_t inside;
    uint32_t sessions;
} park;

/*
 * Begins work on behalf of the session, which leave() ends; neither includes the wait itself.
 * Returns the session's number, or 0 if there is none.
 */
static uint32_t enter(void)
{
    atomic_fetch_add(&park.inside, 1);
    uint32_t on = atomic_load(&park.on);
    if (!on)
        atomic_fetch_sub(&park.inside, 1);
    return on;
}

static void leave(void)
{
    atomic_fetch_sub(&park.inside, 1);
}

static bool is_lock(JNIEnv *jni, jobject o)
{
    for (int i = 0; o && i < LOCKS; i++)
        if (park.locks[i] && (*jni)->IsInstanceOf(jni, o, park.locks[i]))
            return true;
    return false;
}

/*
 * Returns how many top frames belong to the lock itself: a trace starts with the code that wanted
 * the lock.
 */
static jint lock_frames(JNIEnv *jni)
{
    static const char package[] = "java/util/concurrent/locks/";
    jvmtiFrameInfo frames[PACKAGE_FRAMES];
    jint n = 0, skip = 0;
    n = own_stack(jni, frames, PACKAGE_FRAMES);
    unsigned hold = names_hold();
    for (; skip < n; skip++) {
        const struct method *m = names_method(jni, frames[skip].method);
        bool unsafe = m && (strcmp(m->class_name, "jdk/internal/misc/Unsafe") == 0 ||
                            strcmp(m->class_name, "sun/misc/Unsafe") == 0);
        if (!m || (!unsafe && strncmp(m->class_name, package, sizeof(package) - 1) != 0))
            break;
    }
    names_unhold(hold);
    return skip < n ? skip : 0;
}

/*
 * Returns whether the calling thread is about to park for a lock; *ret_site is as returned by
 * monitors_site.
 */
static bool begins(JNIEnv *jni, uint32_t *ret_site)
{
    struct thread *self = threads_self(jni);
    jobject thread = self && !self->own ? park.current(jni, NULL) : NULL;
    jobject blocker = thread ? (*jni)->GetObjectField(jni, thread, park.blocker) : NULL;
    bool lock = is_lock(jni, blocker);
    if (lock)
        *ret_site = monitors_site(jni, blocker, self, lock_frames(jni));
    if (blocker)
        (*jni)->DeleteLocalRef(jni, blocker);
    if (thread)
        (*jni)->DeleteLocalRef(jni, thread);
    return lock;
}

static void JNICALL our_park(JNIEnv *jni, jobject unsafe, jboolean absolute, jlong time)
{
    uint32_t site = 0, session = enter();
    uint64_t since = now_ns();
    bool lock = session && begins(jni, &site);
    if (session)
        leave();
    park.real(jni, unsafe, absolute, time);
    if (!lock)
        return;
    uint64_t ns = now_ns() - since;
    uint32_t now = enter();
    if (now && now == session)
        monitors_blocked(site, ns);
    if (now)
        leave();
}

static const struct rebind_row rows[] = {{"park", (void *)our_park, (void **)&park.real}};

/* Finds the classes and fields. This is done only once; the results remain valid. */
static int learn(JNIEnv *jni)
{
    if (park.blocker)
        return 0;
    park.current = (current_thread)vm_libjvm_function("JVM_CurrentThread");
    park.locks[0] = vm_class(jni, "java/util/concurrent/locks/AbstractOwnableSynchronizer");
    park.locks[1] = vm_class(jni, "java/util/concurrent/locks/StampedLock");
    if (vm.hotspot && park.current && park.locks[0])
        park.blocker = vm_field(jni, "java/lang/Thread", "parkBlocker", "Ljava/lang/Object;");
    return park.blocker ? 0 : -ENOTSUP;
}

int park_on(JNIEnv *jni, struct buf *why)
{
    int r = learn(jni);
    if (r == 0)
        r = rebind_natives(jni, rows, ARRAY_SIZE(rows), true, NULL);
    if (r <= 0) {
        buf_printf(why, "park=y: the VM refuses to bind Unsafe.park");
        return r < 0 ? r : -ENOTSUP;
    }
    park.bound = true;
    atomic_store(&park.on, ++park.sessions);
    return 0;
}

void park_off(JNIEnv *jni)
{
    if (!park.bound)
        return;
    park.bound = false;
    atomic_store(&park.on, 0);
    (void)!rebind_natives(jni, rows, ARRAY_SIZE(rows), false, NULL);
    for (int spin = 0; atomic_load(&park.inside) > 0 && spin < 2000; spin++)
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}
