/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures on demand, for tests. With the hidden option fail=NAME:N the capture NAME is started
 * after all others, and the N-th step of its load and start fails. A step is a call of a function
 * that calls fault_here() first, which every function does that can fail because the VM or the
 * system refuses something. The name "session" stands for the steps that do not belong to a
 * capture. With end:MS a thread that shuts the captures at the end of the recording's span stands
 * still for MS milliseconds after it has read the clock. With measure:MS a thread that has measured
 * what the probes of cpu=times cost uses MS milliseconds of CPU time that its timer does not show.
 */
#pragma once

#include <stdbool.h>

/* Sets the value of the option, NAME:N; NULL: nothing fails. */
void fault_set(const char *spec);
/* Returns whether NAME is the capture (or "session") whose steps are counted. */
bool fault_is_of(const char *name);
/* Makes this thread's steps belong to NAME from now on; NULL: to none. */
void fault_steps_of(const char *name);
/*
 * Returns whether the step that begins here has to fail. False on threads that are not starting a
 * capture.
 */
bool fault_here(void);
/* Stands still for MS milliseconds if MS was demanded for NAME. */
void fault_stall(const char *name);
/* Uses MS milliseconds of CPU time, and blocks all signals for good, if MS was demanded for NAME.
 */
void fault_burn(const char *name);
