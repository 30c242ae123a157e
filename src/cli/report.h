/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "cli/text.h"
#include "model/profile.h"

#include <stdio.h>

/* Writes `"samples":{...}`, a metric's ranked methods, as a member of the object that is open. 0 or -ENOMEM. */
int report_metric_json(struct json *j, const struct profile_view *v);
