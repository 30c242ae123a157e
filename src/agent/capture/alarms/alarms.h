/* SPDX-License-Identifier: Apache-2.0 */
/* How other captures report to the triggers what happens. Any thread; no lock is taken. */
#pragma once

#include "agent/capture/alarms/trigger.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Requests that take longer than this are reported; UINT64_MAX: none is. */
extern _Atomic uint64_t alarm_request_ns;

/*
 * Reports that a request has taken `ns`, and goes on or has ended. One that goes on is reported
 * several times: reported_ns is how long it had taken at the last report, 0 at the first one.
 */
void alarm_request(const char *name, uint64_t ns, uint64_t reported_ns, bool ongoing);
/*
 * Report that the VM stood still from start_ns on for ns: the first for a collection, the second
 * for any reason. operation may be NULL. The triggers measure stops as well; the second report of a
 * stop is ignored if a test held for the first.
 */
void alarm_pause(uint64_t start_ns, uint64_t ns);
void alarm_safepoint(const char *operation, uint64_t start_ns, uint64_t ns);

/* ---- for the triggers ---- */
/*
 * Reports a stop, or the longest of several between start_ns and end_ns, without a name, to each
 * test of a measure.
 */
void alarm_stop(enum measure measure, uint64_t start_ns, uint64_t end_ns, uint64_t ns);
/*
 * Returns the longest time since the last call. If the test holds for it, later reports of the same
 * stops are ignored.
 */
uint64_t alarm_take_longest(const struct trigger_test *t, struct measured *m);
/* Calls f for each test of a measure in the triggers that are active. */
void alarm_each_test(enum measure measure,
                     void (*f)(const struct trigger_test *t, struct measured *m, void *context),
                     void *context);
/* Returns whether a test is about requests or operations of this name. */
bool alarm_is_named(const struct trigger_test *t, const char *name);
/* Moves the name of the longest request or operation out of m; "": it has none. */
void alarm_take_name(struct measured *m, char ret[TRIGGER_NAME_SIZE]);
