/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/capture.h"
#include "proto/vm.h"

/*
 * Records a running VM as `jvmscope attach` does. With a time limit (capture->time_ns), returns
 * once the output is in its place; without one, as soon as the recording has begun. Returns the
 * exit status.
 */
int attach_record(const struct vm *vm, const struct capture_options *capture, const char *output);
