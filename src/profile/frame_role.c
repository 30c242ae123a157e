/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/frame_role.h"

#include "base/generated_name.h"
#include "base/macro.h"

#include <string.h>

/*
 * Methods in which threads wait for work. A name that ends in a dot or a dollar sign stands for
 * every name that begins with it.
 */
static const char *const idle_methods[] = {
    "java.lang.ref.Finalizer$FinalizerThread.",
    "java.lang.ref.Reference$ReferenceHandler.",
    "java.lang.ref.Reference.processPendingReferences",
    "java.lang.ref.Reference.tryHandlePending",
    "java.lang.ref.Reference.waitForReferencePendingList",
    "java.lang.ref.ReferenceQueue.remove",
    "java.net.PlainSocketImpl.socketAccept",
    "java.net.ServerSocket.",
    "java.lang.VirtualThread.takeVirtualThreadListToUnblock",
    "java.util.TimerThread.mainLoop",
    "java.util.concurrent.DelayScheduler.loop",
    "java.util.concurrent.ForkJoinPool.awaitWork",
    "java.util.concurrent.ThreadPoolExecutor.getTask",
    "jdk.internal.ref.CleanerImpl.run",
    "sun.nio.ch.NioSocketImpl.accept",
    "sun.nio.ch.EPoll.wait",
    "sun.nio.ch.EPollArrayWrapper.",
    "sun.nio.ch.EPollPort$",
    "sun.nio.ch.Poller.",
    "sun.nio.ch.Poller$",
    "sun.nio.ch.SelectorImpl.",
    "sun.nio.ch.ServerSocketChannelImpl.",
    "io.netty.channel.epoll.Native.epollWait",
    "io.netty.util.HashedWheelTimer$Worker.waitForNextTick",
    "io.netty.util.concurrent.GlobalEventExecutor.takeTask",
    "io.netty.util.concurrent.SingleThreadEventExecutor.takeTask",
    "org.apache.catalina.core.StandardServer.await",
    "org.apache.tomcat.util.threads.ThreadPoolExecutor.getTask",
    "org.eclipse.jetty.util.thread.QueuedThreadPool.idleJobPoll",
    "org.eclipse.jetty.util.thread.QueuedThreadPool$Runner.idleJobPoll",
    "org.eclipse.jetty.util.thread.ReservedThreadExecutor$ReservedThread.reservedWait",
    "org.jboss.threads.EnhancedQueueExecutor$ThreadBody.",
};

/* Methods that waits pass through and that do not say what the wait is for. */
static const char *const waits[] = {
    "java.lang.Object.wait",
    "java.lang.Thread.sleep",
    "java.lang.VirtualThread.",
    "java.lang.System$",
    "java.util.concurrent.ForkJoinPool.managedBlock",
    "java.util.concurrent.ForkJoinPool.unmanagedBlock",
    "java.util.concurrent.ForkJoinPool.compensatedBlock",
    "java.util.concurrent.locks.",
    "jdk.internal.misc.",
    "jdk.internal.vm.",
    "sun.misc.Unsafe.",
};

/*
 * Classes of the JDK, and of the queues that pools of threads use between their own code and the
 * JDK's.
 */
static const char *const jdk[] = {"java.",
                                  "javax.",
                                  "jdk.",
                                  "sun.",
                                  "com.sun.",
                                  "org.apache.tomcat.util.threads.TaskQueue.",
                                  "org.eclipse.jetty.util.BlockingArrayQueue."};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/*
 * Returns whether a method is in a list. A pattern matches the whole name, or, if it ends in a dot
 * or dollar sign, the beginning of the name. A longer method name ("0" or "Nanos" appended) is a
 * different method.
 */
static bool is_one_of(const char *method, const char *const *list, size_t n, bool open)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(list[i]);
        char last = list[i][len - 1];
        if (strncmp(method, list[i], len) == 0 &&
            (open || last == '.' || last == '$' || !method[len]))
            return true;
    }
    return false;
}

enum frame_role frame_role(const char *method)
{
    if (is_one_of(method, idle_methods, ARRAY_SIZE(idle_methods), false))
        return ROLE_IDLE;
    if (is_one_of(method, waits, ARRAY_SIZE(waits), true))
        return ROLE_WAITS;
    for (size_t i = 0; i < ARRAY_SIZE(jdk); i++)
        if (begins(method, jdk[i]))
            return ROLE_JDK;
    return ROLE_PROGRAM;
}

bool frame_role_is_vm_thread(const char *name)
{
    static const char *const names[] = {"Signal Dispatcher", "Notification Thread",
                                        "Attach Listener", "Service Thread",
                                        "Monitor Deflation Thread"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

bool frame_role_is_idle_worker(const char *callee, const char *method)
{
    /* In JDK 11, runWorker itself parks idle workers, and it also runs their tasks. */
    return begins(callee, "java.util.concurrent.locks.LockSupport.park") &&
           strcmp(method, "java.util.concurrent.ForkJoinPool.runWorker") == 0;
}

/* Returns whether frame i is a function of the agent that the VM called for an event. */
static bool is_callback(const struct rec_stack *s, uint32_t i)
{
    const struct rec_method *caller = i + 1 < s->n ? s->frames[i + 1].method : NULL;
    return caller && caller->full &&
           generated_name_is_vms_library(caller->full, strlen(caller->full)) &&
           frame_role_is_of_agent(s->frames[i].method);
}

uint32_t frame_role_probe_frames(const struct rec_stack *s)
{
    for (uint32_t i = s->n; i-- > 0;) {
        const struct rec_method *m = s->frames[i].method;
        if (m && m->full &&
            (generated_name_is_agents(m->full, strlen(m->full)) || is_callback(s, i)))
            return i + 1;
    }
    return 0;
}

bool frame_role_is_of_agent(const struct rec_method *m)
{
    return m && m->full && generated_name_is_agents_library(m->full, strlen(m->full));
}
