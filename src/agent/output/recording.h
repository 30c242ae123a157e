/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording of a session: the writer of src/jfr, supplied with information about the VM, its
 * methods and its threads.
 */
#pragma once

#include "agent/vm/thread_table.h"
#include "agent/vm/vm.h"
#include "jfr/writer.h"
#include "options/options.h"

/*
 * Opens the recording and describes the VM, the system and the settings in it. The resolver accepts
 * jmethodIDs for frames of type INTERPRETED, JIT, INLINED, C1 and NATIVE with a bci of -3 or more,
 * and serials of thread_table.h for threads. path may be NULL for a ring in memory. Returns 0 or a
 * negative errno of jfr_writer_open.
 */
int recording_begin(struct jfr_writer **ret, const char *path, const struct options *o) must_check;
/* Describes the VM, the system and the settings again, in a ring's new chunk. */
void recording_restate(struct jfr_writer *w, const struct options *o);
/*
 * Describes a thread to the recording while that is possible: its entry may have been removed when
 * the recording needs the description, because counts are written long after what they count. The
 * writer, a struct jfr_writer, keeps the description until it is released. Any thread.
 */
void recording_keep_thread(void *writer, const struct thread *t);
