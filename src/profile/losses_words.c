/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences about what is not there for another reason than a loss. */
#include "profile/losses.h"

#include <inttypes.h>

void losses_early_sentence(const struct early *e, struct buf *out)
{
    buf_printf(out,
               "%s: some was recorded up to %.2f s before the recording began, while classes were "
               "changed",
               e->capture, (double)e->ns / 1e9);
}

void losses_missing_sentence(const struct missing *m, struct buf *out)
{
    buf_printf(out, "%s: %s: %s", m->capture, m->what, m->reason);
}

bool losses_left_out_sentence(const struct losses *l, struct buf *out)
{
    for (size_t i = 0; i < l->left_out.len; i++) {
        const struct twice *row = &l->left_out.data[i];
        const char *between = i == 0 ? "" : i + 1 < l->left_out.len ? ", " : " and ";
        buf_printf(out, "%s%" PRIu64 " %s", between, row->events, row->type);
    }
    if (l->left_out.len)
        buf_string(out, " events of the VM's own recorder were left out: jvmscope recorded the "
                        "same itself");
    return l->left_out.len > 0;
}
