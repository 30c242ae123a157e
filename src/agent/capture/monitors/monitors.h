/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interface between the parts of monitor=y: monitors.c counts, dump.c writes the monitor dump,
 * park.c adds java.util.concurrent.
 */
#pragma once

#include "agent/session/session.h"
#include "agent/vm/thread_table.h"

enum { MONITORS_SKIP_MAX = 32 };

/*
 * Returns the number, above zero, of the site at which the calling thread is about to block on an
 * object; 0 when there is no room. skip: number of top frames to leave out, below
 * MONITORS_SKIP_MAX.
 */
uint32_t monitors_site(JNIEnv *jni, jobject monitor, const struct thread *self, jint skip);
/* Counts a time blocked at a site. Takes no lock. */
void monitors_blocked(uint32_t site, uint64_t ns);
/* Starts counting threads that park for locks (park=y); park_off stops it. */
int park_on(JNIEnv *jni, struct buf *why) must_check;
void park_off(JNIEnv *jni);
/* Writes MONITOR DUMP: all threads, and the monitors that are owned or waited for. */
void monitors_dump(struct session *s, JNIEnv *jni);
/* Writes "java.lang.Object[]" for "[Ljava/lang/Object;", truncated when too long. */
void monitors_source_name(const char *descriptor, char *to, size_t size);
