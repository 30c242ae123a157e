/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/shown_class.h"

#include "agent/vm/lambda.h"
#include "agent/vm/vm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *shown_class_signature(jclass class)
{
    char *signature = NULL;
    if ((*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL) != JVMTI_ERROR_NONE)
        return NULL;
    struct generated_target lambda = {0};
    lambda_target(class, signature, &lambda);
    size_t len = strlen(signature), settled = generated_name_normalize_for(signature, len, &lambda);
    size_t extra = lambda.text[0] ? strlen(lambda.text) + 2 : 0;
    char *text = malloc(settled + extra + 1);
    if (text)
        memcpy(text, signature, settled);
    vm_free(signature);
    if (text && extra)
        settled += (size_t)snprintf(text + settled - 1, extra + 2, "[%s];", lambda.text) - 1;
    if (text)
        text[settled] = 0;
    return text;
}
