/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures on demand, for tests. With the hidden option fail=NAME:N the capture NAME starts after
 * all others, and the N-th step of its load and start fails. A step is a call of a function that
 * calls fault_here() first: each that can fail because the VM or the system refuses something. The
 * name "session" stands for the steps that belong to no capture.
 */
#pragma once

#include <stdbool.h>

/* Takes the option's value; NULL: nothing fails. */
void fault_set(const char *spec);
/* Whether NAME is the capture (or "session") whose steps are counted. */
bool fault_is_of(const char *name);
/* From here on this thread's steps are those of NAME; NULL: of nobody. */
void fault_steps_of(const char *name);
/* Whether the step that begins here is to fail. False on any thread that starts nothing. */
bool fault_here(void);
