/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot/hsperf.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    free(hsperf_string(data, size, "sun.rt.javaCommand"));
    return 0;
}
