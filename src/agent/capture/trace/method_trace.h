/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "agent/session/session.h"

/*
 * Changes what is traced while a recording runs, according to a valid request (trace_request.h).
 * Writes {"patterns", "methods"} as JSON into out; "methods" lists the methods traced now. Under
 * the session's lock. Returns 0, or a negative errno with a sentence in why; -ESRCH: nothing is
 * being traced, or there is no such pattern.
 */
int method_trace_switch(struct session *s, JNIEnv *jni, const char *request, struct buf *out,
                        struct buf *why) must_check;
