/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/lambda.h"

#include "agent/vm/code_names.h"
#include "agent/vm/vm.h"

#include <string.h>

static void find_interfaces(jclass class, struct generated_target *ret)
{
    jint n = 0;
    jclass *of = NULL;
    JNIEnv *jni = vm_jni();
    if (!jni || (*vm.ti)->GetImplementedInterfaces(vm.ti, class, &n, &of) != JVMTI_ERROR_NONE)
        return;
    for (jint i = 0; i < n; i++) {
        char *signature = NULL;
        bool known =
            (*vm.ti)->GetClassSignature(vm.ti, of[i], &signature, NULL) == JVMTI_ERROR_NONE;
        (*jni)->DeleteLocalRef(jni, of[i]);
        if (!known)
            continue;
        size_t len = strlen(signature);
        if (len > 2)
            generated_target_implements(ret, (struct str){signature + 1, len - 2});
        vm_free(signature);
    }
    vm_free(of);
}

struct considered {
    struct str host;
    struct generated_target *target;
};

static void consider(void *context, struct str owner, struct str name)
{
    const struct considered *c = context;
    generated_target_consider(c->target, c->host, owner, name);
}

void lambda_target(jclass class, const char *signature, struct generated_target *ret)
{
    size_t host;
    if (generated_name_is_proxy(signature, strlen(signature)))
        find_interfaces(class, ret);
    if (signature[0] != 'L' ||
        !generated_name_is_lambda(signature + 1, strlen(signature + 1), &host))
        return;
    struct considered considered = {{signature + 1, host}, ret};
    code_each_method(class, consider, &considered);
}
