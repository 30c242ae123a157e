/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What methods are to a thread that waits: those in which threads without work wait are known by
 * their names.
 */
#pragma once

#include "jfr/reader.h"

#include <stdbool.h>

enum frame_role {
    ROLE_PROGRAM, /* of the program, or of a library */
    /* what every wait passes through: Object.wait, LockSupport.park, conditions, queues */
    ROLE_WAITS,
    ROLE_JDK, /* another method of the JDK */
    ROLE_IDLE /* a thread that waits here has nothing to do */
};

/*
 * What a method is to a wait, by its full name: "java.util.concurrent.ThreadPoolExecutor.getTask".
 */
enum frame_role frame_role(const char *method);
/* Whether a thread of this name is one of HotSpot's own that run no Java code but what attaches. */
bool is_vm_thread(const char *name);
/*
 * How many frames at the top of a stack are a probe of the agent's and what that called: the method
 * that has the probe did not call them. All frames where the agent itself called into Java.
 */
uint32_t probe_frames(const struct rec_stack *s);
/* True when a thread waits for work in this method, which called that one. */
bool is_idle_worker(const char *callee, const char *method);
