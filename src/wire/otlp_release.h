/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which release of OTLP a message of profiles was written for: 1.9 numbers the fields of samples
 * differently.
 */
#pragma once

#include "wire/otlp_tables.h"

/* The evidence for and against the field numbers of release 1.9. */
struct otlp_evidence {
    bool old, recent, both; /* both: a sample that either release could have written */
    uint64_t largest;       /* in field 2 of such samples */
};

/*
 * Adds the evidence from the samples of a profile. Returns 0, or -ENOTSUP with the reason in o->why
 * for a release that is not read.
 */
int otlp_weigh_profile(struct otlp *o, struct otlp_evidence *e, struct cursor c) must_check;
