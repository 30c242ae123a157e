/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "agent/capture.h"

extern const struct capture cpu_times_capture;
