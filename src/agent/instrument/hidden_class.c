/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/hidden_class.h"

#include "agent/instrument/instrument.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/vm.h"
#include "base/generated_name.h"

#include <stdio.h>
#include <string.h>

/*
 * Returns whether a class is hidden, "p/C.0x1234", or anonymous, as such classes were before JDK
 * 15.
 */
static bool is_hidden(struct str name)
{
    return memchr(name.data, '.', name.len) || generated_name_is_anonymous(name.data, name.len);
}

static bool is_made_by_jdk(struct str name)
{
    static const char between[] = "$$TypeSwitch";
    size_t host;
    return instrument_is_jdk(name) || generated_name_is_lambda(name.data, name.len, &host) ||
           memmem(name.data, name.len, between, strlen(between));
}

static void check_class(jclass c, struct str name, hidden_class_seen *seen)
{
    char plain[512];
    if (!is_hidden(name) || is_made_by_jdk(name))
        return;
    snprintf(plain, sizeof(plain), "%.*s", (int)name.len, name.data);
    size_t len = generated_name_normalize(plain, strlen(plain));
    plain[len] = 0;
    seen(c, (struct str){plain, len});
}

void hidden_class_prepared(jclass c, hidden_class_seen *seen)
{
    char *signature = NULL;
    if ((*vm.ti)->GetClassSignature(vm.ti, c, &signature, NULL) != JVMTI_ERROR_NONE)
        return;
    size_t len = strlen(signature);
    if (signature[0] == 'L' && len > 2)
        check_class(c, (struct str){signature + 1, len - 2}, seen);
    vm_free(signature);
}

static bool on_loaded(void *context, jclass c, struct str name)
{
    hidden_class_seen *const *seen = context;
    check_class(c, name, *seen);
    return false;
}

void hidden_classes_loaded(JNIEnv *jni, hidden_class_seen *seen)
{
    (void)!loaded_classes_each(vm.ti, jni, on_loaded, &seen);
}
