/* SPDX-License-Identifier: Apache-2.0 */
/* Records of logpoints and watched fields, as the probes write them, become events. */
#pragma once

#include "agent/capture/trace/budget.h"
#include "agent/capture/trace/drain.h"
#include "agent/session/session.h"

/* Reads what the probes write into the rings of drain.h. */
extern const struct drain_reader log_reader;
/* How much may still be recorded. */
extern struct trace_budget log_budget;

/* Declares the events of a recording and forgets the one before. Returns 0 or a negative errno. */
int log_records_begin(struct session *s) must_check;
/*
 * Writes into the recording which fields of logpoints no object had. To be called after the last
 * record was read.
 */
void log_note_missing_fields(struct session *s);

/* Writes a line for the user into the recording. */
void log_note(struct session *s, const char *place, const char *text);
/*
 * Writes such a line about `what` and the reason `why`, up to a limit of lines; status shows it as
 * well. Any thread may call it.
 */
void log_report(const char *place, const char *what, const char *why);
