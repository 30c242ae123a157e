/* SPDX-License-Identifier: Apache-2.0 */
/* Instruments classes that are loaded already, or removes the probes from them. */
#pragma once

#include "agent/instrument/instrument.h"

#include <jvmti.h>

/*
 * Offers all loaded classes to the client c, or to every client when it is NULL. With out_of, the
 * clients as bits, removes their probes instead; with both, transforms what c wants and what these
 * clients have changed. Returns 0, or -EPROTO when the VM does not list its classes.
 */
int loaded_transform(JNIEnv *jni, const struct instrument_client *c, uint64_t out_of);
/* Returns whether the VM allows a class, whose name is in the internal form, to be changed. */
bool loaded_may_change(jclass class, struct str name);
/*
 * Removes the probes of former clients, given as bits. Does not call instrument_pause and
 * instrument_progress, because no recording waits for this.
 */
void loaded_restore(JNIEnv *jni, uint64_t out_of);
/*
 * The callback for ClassPrepare: offers a class to clients of loaded classes (loaded_only), and
 * changes it if it was postponed (instrument_postpone).
 */
void JNICALL loaded_class_prepared(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass class);
