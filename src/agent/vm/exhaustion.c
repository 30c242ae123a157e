/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/exhaustion.h"

#include "agent/vm/management.h"
#include "hotspot/log_outputs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { OUTPUTS_MAX = 16, NAME_SIZE = 512, LIST_MAX = 1 << 20, LOGS_SINCE = 9 };

/* The tag of the lines, as a name of the log's selections. */
#define TAG "jvmti"

/* The outputs of the log that leave out the tag. Protected by the session's lock. */
static struct {
    char name[NAME_SIZE];
    enum log_level level; /* what it was before */
} quiet[OUTPUTS_MAX];

static int n_quiet, users;

static int set_level(JNIEnv *jni, const struct log_output *o, enum log_level level)
{
    char command[512];
    int n = snprintf(command, sizeof(command), "VM.log output=#%u what=" TAG "=%s decorators=%.*s",
                     o->number, log_level_word(level), (int)o->decorators.len, o->decorators.data);
    if (n >= (int)sizeof(command))
        return -ENOBUFS;
    return management_diagnostic_command(jni, command, NULL);
}

/* Calls f for each output of the log until it returns an error. */
static int each_output(JNIEnv *jni, int (*f)(JNIEnv *jni, const struct log_output *o))
{
    _cleanup_(buf_release) struct buf list = BUF(LIST_MAX);
    int r = management_diagnostic_command(jni, "VM.log list", &list);
    const char *at = buf_str(&list);
    while (r == 0 && *at) {
        struct log_text line = {at, strcspn(at, "\n")};
        struct log_output o;
        if (log_output_read(line, &o))
            r = f(jni, &o);
        at += line.len + (at[line.len] == '\n');
    }
    return r;
}

/*
 * Turns the tag off for one output. Leaves the output alone if the user has selected the tag or
 * requested more than warnings.
 */
static int make_quiet(JNIEnv *jni, const struct log_output *o)
{
    bool named;
    enum log_level level = log_output_level(o, TAG, &named);
    if (named || level == LOG_OFF || level < LOG_WARNING)
        return 0;
    if (n_quiet == OUTPUTS_MAX || o->name.len >= sizeof(quiet->name))
        return -ENOBUFS;
    int r = set_level(jni, o, LOG_OFF);
    if (r < 0)
        return r;
    log_text_copy(quiet[n_quiet].name, sizeof(quiet->name), o->name);
    quiet[n_quiet++].level = level;
    return 0;
}

/* Leaves an output alone that somebody else has configured in the meantime. */
static int restore(JNIEnv *jni, const struct log_output *o)
{
    bool named;
    for (int i = 0; i < n_quiet; i++)
        if (log_text_is(o->name, quiet[i].name) && log_output_level(o, TAG, &named) == LOG_OFF &&
            named)
            return set_level(jni, o, quiet[i].level);
    return 0;
}

int exhaustion_on(const struct vm_callbacks *table, JNIEnv *jni, bool *ret_logged)
{
    bool logged = false;
    if (users == 0 && vm.hotspot && vm.version >= LOGS_SINCE)
        logged = each_output(jni, make_quiet) < 0;
    users++;
    int r = vm_events_on(table);
    if (r < 0)
        exhaustion_off(table, jni);
    else
        *ret_logged = logged;
    return r;
}

void exhaustion_off(const struct vm_callbacks *table, JNIEnv *jni)
{
    vm_events_off(table);
    if (--users)
        return;
    /* A VM that is ending does not log anything for which the level would matter. */
    if (n_quiet && !vm.dying)
        (void)each_output(jni, restore);
    n_quiet = 0;
}
