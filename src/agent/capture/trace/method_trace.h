/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "agent/session.h"

/*
 * Switches tracing while it runs, by a request without fault (trace_request.h). Writes {"patterns",
 * "methods"} as JSON into out, methods being those that were traced at some time. Under the
 * session's lock. -ESRCH: nothing is traced, or no such pattern.
 */
int method_trace_switch(struct session *s, JNIEnv *jni, const char *request, struct buf *out,
                        struct buf *why) must_check;
