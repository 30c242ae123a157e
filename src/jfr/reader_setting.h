/* SPDX-License-Identifier: Apache-2.0 */
/* jdk.ActiveSetting: the settings of the VM's recorder. */
#pragma once

#include "base/macro.h"
#include "jfr/reader.h"

/*
 * Reads the duration in a setting's value, "10 ms" or "10" (milliseconds). Returns 0, -EINVAL, or
 * -ERANGE when it is too large.
 */
int rec_setting_duration(const struct rec_event *e, uint64_t *ret_ns) must_check;
/* Returns whether the event is a setting of the event type with this name. */
bool rec_setting_is_of(const struct rec_event *e, const char *type);
