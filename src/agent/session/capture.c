/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session/capture.h"

const struct capture *const captures[captures_count] = {
#define CAPTURE(name) &capture_##name,
#include "agent/session/capture_list.h"
#undef CAPTURE
};
