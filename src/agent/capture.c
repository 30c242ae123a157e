/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture.h"

const struct capture *const captures[] = {
#define CAPTURE(name) &capture_##name,
#include "agent/capture_list.h"
#undef CAPTURE
};
const int captures_count = ARRAY_SIZE(captures);
