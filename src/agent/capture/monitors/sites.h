/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counts of MONITOR TIME: by class, stack and (with thread=y) thread. monitors.h has the
 * functions that others than monitors.c call.
 */
#pragma once

#include "agent/session/session.h"

/* Makes room for the counts. Returns 0 or -ENOMEM. */
int monitor_sites_init(const struct options *o) must_check;
/* Frees all counts; also after monitor_sites_init has failed. */
void monitor_sites_release(void);
/*
 * Returns the number of an object's class, or -1 if there is no room.
 */
int64_t monitor_sites_class(JNIEnv *jni, jobject object);
/* Returns the JVM descriptor of the class with this number, until monitor_sites_release. */
const char *monitor_sites_class_name(uint32_t class);
/*
 * Adds a time blocked at a site, as monitors_site returns it; count: also an entry. Takes no lock.
 */
void monitor_sites_add(uint32_t site, bool count, uint64_t ns);
/* Writes MONITOR TIME; the counts restart at zero. */
void monitor_sites_write(struct session *s, JNIEnv *jni);
/* Return how many entries have been counted, and how many were not for lack of room. */
uint64_t monitor_sites_entered(void);
uint64_t monitor_sites_lost(void);
