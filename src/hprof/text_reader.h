/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads HPROF's text output, ours and the original agent's, as a stream of items. Unknown lines are
 * skipped and counted, because writers have different preambles, and a file may be truncated
 * anywhere.
 */
#pragma once

#include "base/macro.h"
#include "base/strpool.h"
#include "hprof/records.h"
#include "hprof/text.h"

enum hprof_item_kind {
    HPROF_ITEM_THREAD_START, /* serial, object, name, group */
    HPROF_ITEM_THREAD_END,   /* serial */
    HPROF_ITEM_TRACE,        /* serial, thread (0 when not stated), frames */
    HPROF_ITEM_RANKED_BEGIN, /* ranked, total */
    HPROF_ITEM_RANKED,       /* ranked, rank, self, accumulated, count, trace, name */
    HPROF_ITEM_RANKED_END,   /* ranked */
    HPROF_ITEM_SITES_BEGIN,  /* name: the order */
    HPROF_ITEM_SITE,         /* site */
    HPROF_ITEM_SITES_END,
    HPROF_ITEM_LEFT_OUT,   /* count (sites), total (bytes): what SITES does not list */
    HPROF_ITEM_OLD_BEGIN,  /* cpu=old has no end */
    HPROF_ITEM_OLD,        /* count, name (callee), caller (empty: unknown), total (ms) */
    HPROF_ITEM_WAIT,       /* name (descriptor), time_ms (timeout), thread (0: unknown) */
    HPROF_ITEM_WAITED,     /* name, time_ms, thread */
    HPROF_ITEM_HEAP_BEGIN, /* count (objects), total (bytes) */
    HPROF_ITEM_HEAP_END,   /* count: OBJ and ARR lines seen, total: the sum of their sizes */
};

struct hprof_item_frame {
    struct str method, source; /* not NUL-terminated */
    int32_t line;              /* positive, or HPROF_LINE_UNKNOWN */
};

struct hprof_text_item {
    enum hprof_item_kind kind;
    enum hprof_ranked ranked;
    uint32_t serial, thread, trace, rank;
    double self, accumulated;
    uint64_t object, count, total;
    int64_t time_ms;
    struct str name, group, caller; /* into the text; not NUL-terminated */
    const struct hprof_item_frame *frames;
    size_t n_frames;
    struct hprof_text_site site; /* class_name is NULL; use `name` */
};

struct hprof_text_summary {
    /* the number of lines, and of those after the preamble that were skipped */
    uint64_t lines, unknown;
    bool cut; /* the text ends within a section or a line */
};

/*
 * Calls item for each item in the order of the text; the data to which the item points are valid
 * during the call. A negative return value stops the reading and is returned. Returns 0, -EBADMSG
 * when the text is not HPROF's, or -ENOMEM.
 */
int hprof_text_read(const void *text, size_t len,
                    int (*item)(void *ctx, const struct hprof_text_item *item), void *ctx,
                    struct hprof_text_summary *ret_summary) must_check;
