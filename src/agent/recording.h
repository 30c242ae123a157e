/* SPDX-License-Identifier: Apache-2.0 */
/* The recording of a session: src/jfr's writer, told about the VM, its methods and its threads. */
#pragma once

#include "agent/options.h"
#include "agent/vm.h"
#include "jfr/writer.h"

/*
 * Opens the recording and writes what it is about: the VM, the system, the settings. The resolver
 * takes jmethodIDs for frames of type INTERPRETED, JIT, INLINED, C1 and NATIVE with a bci of -3 or
 * more, and serials of thread_table.h for threads.
 */
int recording_open(struct jfr_writer **ret, const char *path, const struct options *o) must_check;
