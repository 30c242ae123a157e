/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each event of a recording means for its timeline.
 * Its functions begin with loader_.
 */
#pragma once

#include "jfr/reader.h"
#include "jfr/reader_rows.h"
#include "timeline/fields.h"

/* The events of a timeline; ends with a zero. */
extern const struct rec_select loader_events[];

/* Adds the events of the timeline that follow from l->e. Sets l->error on failure. */
void loader_on_event(struct loader *l);
/*
 * For a first pass over the recording: loader_on_first reads what applies to the whole recording,
 * and loader_first_wants returns which rows of a tag are needed for that (rec_rows_first).
 */
void loader_on_first(struct loader *l);
unsigned loader_first_wants(int tag);
/*
 * Determines which program wrote the recording, on which the meaning of fields depends. The
 * recording states this once, near its beginning but not before all other events. Returns 0 or a
 * negative errno.
 */
int loader_read_writer(struct loader *l, struct recording *recording);
