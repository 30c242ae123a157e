/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log= and watch=: hidden classes of the program, in which no agent can place probes. Those that
 * have a line of log=, or instructions that name a field of watch=, are reported as losses.
 */
#pragma once

#include "base/buf.h"
#include "base/strpool.h"
#include "options/log_spec.h"

#include <jni.h>
#include <stdbool.h>

/*
 * Counts those that are created until log_hidden_off and, in a VM that was running, those that
 * exist. The specs remain valid until then; their `hidden` is counted. Returns 0, or the error of
 * vm_events_on.
 */
int log_hidden_on(JNIEnv *jni, struct log_spec *specs) must_check;
void log_hidden_off(void);
/* Appends that n hidden classes cannot be changed. having: what they have, "code for this line". */
void log_hidden_put(struct buf *to, unsigned n, const char *having);

/*
 * Returns whether a source file of a spec, "com/shop/Cart.java" or "Cart.java", is that of a class.
 * name: the class's, in the internal form; source: from its attribute SourceFile.
 */
bool log_file_is(const char *place, struct str name, struct str source);
