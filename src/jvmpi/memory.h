/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of objects, and collections. */
#pragma once

#include "jvmpi/layer.h"

/* Called at load. Returns -1 when the VM refuses. */
int memory_open(void);
/*
 * Makes the VM report when the class is unloaded, so that CLASS_UNLOAD is sent soon after. Called
 * for each class.
 */
void memory_watch_class(JNIEnv *env, jclass class, jobjectID id);
/*
 * Enclose calls of JVM TI that walk the heap or the layer's tags. These report freed tags on the
 * calling thread. No bracket begins meanwhile, because the queue may be incomplete. They enclose
 * the same calls as heap_walk_begin.
 */
void memory_walk_begin(void);
void memory_walk_end(void);
/*
 * For a walk in an environment of its own, which some VMs inform about freed tags of the others and
 * then forget them. Returns -1 when the VM refuses.
 */
int memory_listen(jvmtiEnv *ti);
int memory_start(JNIEnv *env);
void memory_stop(void);
/*
 * DisableGC and EnableGC. Between these calls, which may be nested, no bracket of OBJECT_FREE and
 * CLASS_UNLOAD begins, and none is in progress unless layer_disable_gc was not allowed to wait for
 * its end.
 */
void layer_disable_gc(void);
void layer_enable_gc(void);
/*
 * Do what DisableGC and EnableGC do, for requests of the layer: RunGC does not return at once on
 * other threads.
 */
void layer_brackets_hold(void);
void layer_brackets_release(void);
void layer_run_gc(void);
/* Queues objects whose end must be reported, if such events are enabled. */
void memory_ended(const jlong *ids, size_t n);
extern const struct vm_callbacks free_events, gc_events;
