/* SPDX-License-Identifier: Apache-2.0 */
/* What the decoders of this room share. */
#pragma once

#include "base/cursor.h"
#include "wire/batch.h"

#define DECODE_NONE UINT32_MAX

/*
 * Appends to a table that is needed only while a message is decoded: 0, -ENOMEM, or -E2BIG beyond
 * limits.entries.
 */
#define DECODE_PUSH(b, table, value)                                                     \
    ((table)->len >= decode_entries(b) ? wire_beyond((b), "too many entries in a table") \
                                       : vec_push((table), (value)))

/* Returns limits.entries, or what is usual if that is 0. */
size_t decode_entries(const struct wire_batch *b);
/*
 * Adds to *count the frames of a stack that is about to be walked (`more`): a small message can
 * name long stacks again and again. Returns 0, or -E2BIG beyond limits.frames.
 */
int decode_frames(struct wire_batch *b, size_t *count, size_t more) must_check;

struct decode_numbers {
    uint64_t *data;
    size_t len, cap;
};

struct decode_labels {
    struct wire_label *data;
    size_t len, cap;
};

/*
 * The strings of a message, which are not copied, and their numbers in the batch, determined on
 * demand.
 */
struct decode_strings {
    VEC(struct str) texts;
    VEC(uint32_t) numbers; /* + 1; 0: not known yet */
};

/* Adds the next string of the message, which must outlive s. Returns 0, -ENOMEM or -E2BIG. */
int decode_strings_add(struct decode_strings *s, struct wire_batch *b,
                       struct cursor text) must_check;
void decode_strings_release(struct decode_strings *s);
/*
 * Returns string `number` of the message, without a NUL after it; an empty string if its number is
 * too large.
 */
struct str decode_text(const struct decode_strings *s, uint64_t number);
/* Returns the number in the batch of string `number` of the message, or a negative errno. */
int64_t decode_string(struct decode_strings *s, struct wire_batch *b, uint64_t number) must_check;

/*
 * Adds a frame and returns its number, or a negative errno. system_name is the name followed by a
 * JVM's descriptor, or another name, which is used only if `name` is empty.
 */
int64_t decode_frame(struct wire_batch *b, struct str name, struct str system_name, struct str file,
                     uint32_t kind, int64_t line) must_check;
/* Appends a label with these texts to `to`. Returns 0, -ENOMEM or -E2BIG. */
int decode_label(struct wire_batch *b, struct str key, struct str value,
                 struct decode_labels *to) must_check;
/* If a label is the id of a trace or a span, sets it in the link and returns true. */
bool decode_link_label(struct str key, struct str value, struct wire_link *link);

/* Writes to why, if it is empty, what a failure means for the message that was being decoded. */
void decode_reason(const struct wire_batch *b, int r, const char *what, struct buf *why);
