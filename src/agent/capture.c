/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture.h"

const struct capture *const captures[captures_count] = {
#define CAPTURE(name) &capture_##name,
#include "agent/capture_list.h"
#undef CAPTURE
};
