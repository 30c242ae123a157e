/* SPDX-License-Identifier: Apache-2.0 */
/* What each event of a recording means for its timeline. */
#pragma once

#include "jfr/reader.h"
#include "jfr/reader_rows.h"
#include "timeline/fields.h"

/* The events of a timeline; ends with a zero. */
extern const struct rec_select loader_events[];

/* Adds the events of the timeline that follow from l->e. Sets l->error on failure. */
void loader_on_event(struct loader *l);
/* During a first reading: takes what holds for the whole recording; and which rows it needs. */
void loader_on_first(struct loader *l);
unsigned loader_first_wants(int tag);
/*
 * Finds out who wrote the recording, which decides what a field means. This is stated once, near
 * the beginning but not before everything else. Returns 0 or a negative errno.
 */
int loader_read_writer(struct loader *l, struct recording *recording);
