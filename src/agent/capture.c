/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture.h"

const struct capture *const captures[] = {
    NULL, /* the table must not be empty */
};
const int captures_count = ARRAY_SIZE(captures) - 1;
