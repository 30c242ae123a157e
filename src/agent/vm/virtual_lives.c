/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/virtual_lives.h"

#include "agent/vm/virtual_list.h"
#include "agent/vm/virtual_threads.h"
#include "agent/vm/vm.h"
#include "base/clock.h"

/*
 * Sums over all threads, in ns since `began`: the time that threads were alive is the sum of their
 * ends minus the sum of their beginnings.
 */
static struct {
    uint64_t began;
    _Atomic int64_t alive, ended_minus_started;
} lives;

static void JNICALL on_start(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    lives.alive++;
    lives.ended_minus_started -= (int64_t)(now_ns() - lives.began);
}

static void JNICALL on_end(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    lives.alive--;
    lives.ended_minus_started += (int64_t)(now_ns() - lives.began);
}

static const struct vm_callbacks events = {.VM_VIRTUAL_THREAD_START = on_start,
                                           .VM_VIRTUAL_THREAD_END = on_end};

static void count(const struct existing_virtual *v, void *arg)
{
    lives.alive++;
}

bool virtual_lives_start(JNIEnv *jni)
{
    jvmtiCapabilities want = {0}, missing = {0};
    uint64_t left = 0;
    vm_capability_virtual_threads(&want);
    if (vm.version < 21 || vm_need(&want, &missing) < 0 || !vm_capabilities_empty(&missing))
        return false;
    lives.began = now_ns();
    lives.alive = lives.ended_minus_started = 0;
    if (vm_events_on(&events) < 0)
        return false;
    if (vm.late && virtual_threads_visit(jni, count, NULL, &left) == 0)
        lives.alive += (int64_t)left;
    return true;
}

void virtual_lives_off(void)
{
    vm_events_off(&events);
}

uint64_t virtual_lives_unmounted_ms(void)
{
    int64_t alive = lives.alive, ns = lives.ended_minus_started;
    if (alive > 0)
        ns += alive * (int64_t)(now_ns() - lives.began);
    ns -= (int64_t)virtual_threads_mounted_ns();
    return ns > 0 ? (uint64_t)ns / NS_PER_MS : 0;
}
