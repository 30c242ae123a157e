/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of a message of OTLP profiles: strings, functions, locations, stacks, attributes. Each
 * function returns a negative errno, with the reason in o->why, for an index outside its table.
 */
#pragma once

#include "base/protobuf.h"
#include "wire/decode.h"

struct function {
    uint64_t name, system_name, file; /* numbers of strings */
};

struct location {
    uint32_t first, n; /* of frames, the innermost first: the others have inlined it */
};

/* What the entries of a table of the message became in the batch, by their place in the table. */
struct otlp {
    struct wire_batch *b;
    struct buf *why;
    struct decode_strings strings;
    VEC(uint64_t) mappings; /* strings: the files */
    VEC(struct function) functions;
    VEC(struct wire_label) attributes;
    VEC(struct location) locations;
    VEC(uint32_t) frames;
    VEC(struct cursor) stacks; /* what lies in the message */
    VEC(uint32_t) nodes;       /* of stacks, + 1; 0: not needed yet */
    VEC(uint32_t) links;
    struct decode_numbers numbers, values, times; /* of what is being read */
    struct decode_labels labels;                  /* likewise */
    uint32_t frame_type, frame_kind;              /* strings of the batch */
    size_t walked;
    bool old_samples; /* fields of samples have the numbers of release 1.9 */
};

/* Sets the reason, which is copied, and returns -EPROTO. */
int otlp_refuse(struct otlp *o, const char *text) must_check;

/*
 * Checks that an index is below len. Returns 0, or -EPROTO with the reason. Indices are int32; a
 * negative one reads as a huge number.
 */
int otlp_check_index(struct otlp *o, const char *table, uint64_t index, size_t len) must_check;

/*
 * Appends the numbers of a field, packed or not, which are fixed64 if `fixed` is true. Returns 0,
 * -EPROTO, -ENOMEM or -E2BIG.
 */
int otlp_read_list(struct otlp *o, struct decode_numbers *to, struct protobuf_field f,
                   bool fixed) must_check;

/* Returns the number in the batch of string `index` of the message. */
int64_t otlp_string_of(struct otlp *o, uint64_t index) must_check;

/* Returns the set of labels for a list of indices of attributes. */
int64_t otlp_set_of(struct otlp *o, const struct decode_numbers *indices) must_check;

/* Reads a resource of the message, and returns its set of labels. */
int64_t otlp_read_resource(struct otlp *o, struct cursor c) must_check;

/*
 * Reads the tables of the message, wherever they lie in it. Must be called before the functions
 * that use these tables.
 */
int otlp_read_dictionaries(struct otlp *o, struct cursor data) must_check;

/*
 * Returns the node of stack `stack` of the message. A message without samples of stacks may have no
 * table of stacks: then stack 0 is the root.
 */
int64_t otlp_node_of(struct otlp *o, uint64_t stack) must_check;
