/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/unmatched.h"

#include "agent/capture/trace/trace_state.h"

#include <stdlib.h>
#include <string.h>

static bool is_among(const char *list, const char *pattern)
{
    size_t n = strlen(pattern);
    for (const char *p = list; *p; p += strcspn(p, ":"), p += *p == ':')
        if (strcspn(p, ":") == n && strncmp(p, pattern, n) == 0)
            return true;
    return false;
}

/*
 * Returns how much of a pattern is traced so far. If that is not all, the reason is appended to
 * why. The lock must not be held.
 */
static enum trace_result traced_of(JNIEnv *jni, const char *pattern, struct buf *why)
{
    const char *type = trace_pattern_type(pattern);
    if (type)
        return trace_explain_type(jni, type, why);
    pthread_mutex_lock(&method_trace.lock);
    bool matched = !*pattern ||
                   trace_any_matches(&method_trace.methods, pattern, method_trace.patterns_changed);
    pthread_mutex_unlock(&method_trace.lock);
    if (matched)
        return trace_explain_hidden(jni, pattern, method_trace.exclude, why);
    trace_explain(jni, pattern, method_trace.exclude, why);
    return TRACED_NOTHING;
}

void trace_each_unmatched(JNIEnv *jni, const char *among, trace_unmatched *f, void *context)
{
    pthread_mutex_lock(&method_trace.lock);
    _cleanup_free_ char *patterns = strdup(method_trace.rules.patterns.list);
    pthread_mutex_unlock(&method_trace.lock);
    for (char *p = patterns, *end; p && *p; p = end) {
        _cleanup_(buf_release) struct buf why = BUF(4096);
        end = p + strcspn(p, ":");
        end += *end == ':' ? (*end = 0, 1) : 0;
        if (among && !is_among(among, p))
            continue;
        enum trace_result traced = traced_of(jni, p, &why);
        if (traced != TRACED)
            f(context, p, traced, buf_str(&why));
    }
}
