/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What role a method plays for a thread that waits. Methods in which threads wait for work are
 * recognized by their names.
 */
#pragma once

#include "jfr/reader.h"

#include <stdbool.h>

enum frame_role {
    ROLE_PROGRAM, /* a method of the program or of a library */
    /* a method that every wait passes through: Object.wait, LockSupport.park, conditions, queues */
    ROLE_WAITS,
    ROLE_JDK, /* another method of the JDK */
    ROLE_IDLE /* a thread that waits here has nothing to do */
};

/*
 * Returns the role of a method, given its full name such as
 * "java.util.concurrent.ThreadPoolExecutor.getTask".
 */
enum frame_role frame_role(const char *method);
/*
 * Returns whether this is the name of one of HotSpot's own threads, which run no Java code except
 * for attaching.
 */
bool frame_role_is_vm_thread(const char *name);
/*
 * Returns how many frames at the top of a stack belong to a probe of the agent, because the method
 * with the probe did not call them itself, or to a function of the agent that the VM called for an
 * event: all frames when the agent itself called into Java.
 */
uint32_t frame_role_probe_frames(const struct rec_stack *s);
/*
 * Returns whether a frame is of a function of the agent's library, which no stack shows: natives
 * and JNI functions are called through such functions when they are measured.
 */
bool frame_role_is_of_agent(const struct rec_method *m);
/*
 * Returns whether a thread waits for work in `method`, which has called `callee`. Both are full
 * names as in frame_role.
 */
bool frame_role_is_idle_worker(const char *callee, const char *method);
