/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's profile.proto, already unpacked (wire/unpack.h). Field numbers:
 * https://github.com/google/pprof/blob/main/proto/profile.proto
 */
#pragma once

#include "wire/batch.h"

/*
 * A comment of a profile that begins with this was written by jvmscope and says on which
 * measurements its figures are based.
 */
#define PPROF_NOTE "jvmscope: "

/*
 * Adds a profile to a batch. Each value of a pprof sample becomes a sample of its type; zeros are
 * left out. `resource` is a set of labels for the new profile. Returns 0, or with the reason in
 * why: -EPROTO, -E2BIG or -ENOMEM. The batch may have grown when it fails.
 */
int pprof_decode(struct wire_batch *b, const void *data, size_t len, uint32_t resource,
                 struct buf *why) must_check;
