/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as collapsed stacks, pprof or HPROF's outputs, then everything that is made of such a
 * profile.
 */
#include "profile/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct profile *p)
{
    for (int m = 0; m < PROFILE_METRICS; m++) {
        struct profile_view v;
        struct profile_rank *ranks;
        struct profile_tree t;
        size_t n;
        if (profile_view_init(&v, p, (enum profile_metric)m,
                              &(struct profile_filter){.class_name = "a*"}) < 0)
            continue;
        if (profile_rank(&v, &ranks, &n) == 0)
            free(ranks);
        for (int inverted = 0; inverted < 2; inverted++) {
            if (profile_tree_init(&t, &v, inverted) == 0)
                profile_tree_release(&t);
        }
        profile_view_release(&v);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(struct load * l) = {load_collapsed, load_hprof, load_hprof_text,
                                                      load_wire};
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
        struct buf why = BUF(4096);
        struct load l = {
            .profile = profile_new(), .data = data, .len = size, .path = "", .why = &why};
        if (l.profile && readers[i](&l) == 0)
            use(l.profile);
        profile_free(l.profile);
        buf_release(&why);
    }
    return 0;
}
