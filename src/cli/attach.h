/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/capture.h"
#include "proto/vm.h"

/*
 * Records a running VM as `jvmscope attach` does, from the start of the agent until the output is
 * in its place. Returns the exit status.
 */
int attach_record(const struct vm *vm, const struct capture_options *capture, const char *output);
