/* SPDX-License-Identifier: Apache-2.0 */
/* What locks cost: their shares of the critical path of a part, and what shorter sections gain. */
#pragma once

#include "analysis/monitor_stats.h"
#include "analysis/what_if.h"
#include "cli/threads/threads.h"

struct gains {
    /* of the selected part: of the recording itself, or of a part that was read separately */
    struct thread_view view;
    struct critical_path path;
    struct path_shares shares;
    struct hold_table holds;
    struct unknown_table unknown;
};

/*
 * Computes all of it for the selected part of v; `held` selects the holds. *ret needs
 * gains_release, also after a failure, when it lacks what could not be computed. Returns 0 or a
 * negative errno.
 */
int gains_of(struct thread_view *v, const struct stats_filter *held, struct gains *ret);
void gains_release(struct gains *g);
/* Returns the share of a class of v, or NULL. */
const struct tl_share *gains_share(const struct gains *g, const struct thread_view *v,
                                   uint32_t class);
/* Returns the waits for a class of v whose owners are unknown, or NULL. */
const struct tl_unowned *gains_unknown(const struct gains *g, const struct thread_view *v,
                                       uint32_t class);
/*
 * Returns what the program would gain, in ns, if sections of a share's class took less time,
 * computed as by `what-if`. Sets *ret_inferred if the share or the ends of sections are inferred.
 */
uint64_t gains_if(const struct gains *g, const struct tl_share *share, double factor,
                  bool *ret_inferred);
