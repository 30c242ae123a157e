/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clients of instrumentation, and what is known about the classes that were offered to them.
 * Private to this folder; instrument.c owns it.
 */
#pragma once

#include "agent/instrument/instrument.h"

#include <stdatomic.h>

enum { CLIENTS_MAX = 8 };

extern _Atomic(const struct instrument_client *) instrument_clients[CLIENTS_MAX];

/*
 * Prepares the clients that want a class (instrument_client.prepare); with an empty name, all of
 * them. Returns, as bits, the clients to which classes may be offered.
 */
uint64_t instrument_prepare(JNIEnv *jni, struct str class_name);

/*
 * Counts since the first client began. left: methods left unchanged, by reason. refused: classes
 * that the VM refused, or malformed ones. unmodifiable: loaded classes that the VM does not allow
 * to be changed. nameless: JDK 8's anonymous classes.
 */
extern struct instrument_tally {
    _Atomic uint64_t classes, methods, left[LEFT_REASONS], refused, unmodifiable, nameless;
} instrument_tally;

bool instrument_any_client(void);
/*
 * Returns whether a class is offered to one of the clients or, if `one` is not NULL, to that
 * client.
 */
bool instrument_wants(struct str class_name, const struct instrument_client *one);
/* Records that the VM has refused the new code of a class, which is then no longer offered. */
void instrument_set_refused(struct str class_name);
/*
 * Notes that a class is to be changed when it is prepared. Returns false if the VM does not report
 * that, or memory runs out.
 */
bool instrument_postpone(struct str class_name) must_check;
bool instrument_is_postponed(struct str class_name);
/*
 * instrument_changed_by returns the clients whose probes a class contains, as bits;
 * instrument_set_changed adds clients to these.
 */
uint64_t instrument_changed_by(struct str class_name);
void instrument_set_changed(struct str class_name, uint64_t by);
/*
 * Returns java.lang.Thread, once, when it is time to change it (instrument_client.thread_last), and
 * otherwise NULL.
 */
jclass instrument_take_thread(void);
/*
 * Returns whether a client with `seldom` has changed a class of this name since the agent was
 * attached, also for a recording that has ended.
 */
bool instrument_changed_before(struct str class_name, const struct instrument_client *c);
