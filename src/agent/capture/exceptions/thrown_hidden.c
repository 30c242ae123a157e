/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/exceptions/thrown_hidden.h"

#include "agent/capture/exceptions/thrown_probes.h"
#include "agent/instrument/hidden_class.h"
#include "agent/session/session.h"
#include "agent/stacks/names.h"
#include "agent/vm/vm.h"
#include "jfr/losses.h"

static void on_hidden(jclass c, struct str plain)
{
    struct session *s = session_now;
    char text[512];
    if (!s)
        return;
    names_dotted(plain.data, text, sizeof(text));
    thrown_probes_partial();
    jfr_lose_named(s->out.jfr, LOSS_EXCEPTION_HIDDEN, 1, text);
}

static void JNICALL on_prepare(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass c)
{
    hidden_class_prepared(c, on_hidden);
}

static const struct vm_callbacks events = {.ti = {.ClassPrepare = on_prepare}};

int thrown_hidden_on(JNIEnv *jni)
{
    int r = vm_events_on(&events);
    if (r == 0 && vm.late)
        hidden_classes_loaded(jni, on_hidden);
    return r;
}

void thrown_hidden_off(void)
{
    vm_events_off(&events);
}
