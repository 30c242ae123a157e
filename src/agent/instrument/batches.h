/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes classes to RetransformClasses in batches that are small enough not to be noticed by a
 * running program, with pauses between them, and never so often that the VM fails.
 */
#pragma once

#include "base/strpool.h"

#include <jni.h>
#include <stdbool.h>

struct batches {
    /* false: the VM refuses the batch as a whole */
    bool (*transform)(const jclass *classes, int n);
    void (*one)(jclass class); /* called for each class of a batch that was refused */
    /* called about fifty times a second between batches; may be NULL */
    void (*pause)(JNIEnv *jni);
    void (*progress)(int done, int of); /* after each batch; may be NULL */
};

/*
 * Has the VM transform classes. In a VM that was running before the agent came, a batch stops the
 * program for a few milliseconds. The pauses are long enough that only one request in a hundred is
 * delayed by more than 4 ms, unless all pauses together would exceed 30 ms per class or 60 s.
 */
void batches_run(JNIEnv *jni, const struct batches *b, const jclass *classes, int n);
/*
 * Announces that a recording begins or ends whose captures change classes in n rounds, each in
 * calls of batches_run that share these pauses. n = 0: the rounds are over; each later call has
 * pauses of its own.
 */
void batches_rounds(unsigned n);
/*
 * Returns whether batches_run is at work, and stores how many classes it has handled and how many
 * there are. Any thread.
 */
bool batches_progress(int *ret_done, int *ret_of);
/*
 * Sleeps for ns, but not longer than until a thread waits for the work (batches_skip_pauses) or the
 * VM is ending, and calls `pause` (may be NULL) meanwhile. Returns false if the VM is ending, so
 * that the remaining classes are skipped.
 */
bool batches_rest(JNIEnv *jni, void (*pause)(JNIEnv *jni), uint64_t ns);
/*
 * Sets whether another thread waits for the work in progress, which then continues without pauses.
 * Several threads may wait: each `true` is undone by one `false`. Any thread.
 */
void batches_skip_pauses(bool on);
/* Makes work in progress skip the remaining classes, because the VM is ending. Any thread. */
void batches_end(void);
/* Returns whether batches_end was called, so that classes may have been left as they are. */
bool batches_ended(void);

/*
 * Returns whether a class can be transformed once more. HotSpot adds the constants of the new code
 * to those of the old code and does not consider two NaNs equal, so their number doubles each time;
 * at 65,536 constants the VM hangs in an endless loop. Counts the transformations of each class
 * name. `back`: to remove probes, which is always permitted. Any thread.
 */
bool batches_may_transform(jclass class, struct str name, bool back);
/* Returns how often batches_may_transform returned false. */
uint64_t batches_left(void);
