/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `jvmscope heap` share: options, opening, answering. */
#pragma once

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/heap/page.h"
#include "heap/heap.h"

struct heap_options {
    bool json, retained, strong, rebuild, all;
    const char *output, *index, *class, *object, *package, *loader, *children, *exclude, *sort,
        *sql, *find;
    uint64_t limit, memory, dump;
    uint64_t patience; /* nanoseconds that a query may take, 0: as long as it wants */
};

/*
 * One question to a heap: the verb's operands behind the file, and the page that takes the answer.
 */
struct heap_call {
    struct heap *heap;
    const struct heap_options *options;
    char **operands;
    int count;
    struct page *page;
};

/* their struct is struct heap_options */
extern const struct arg_set heap_common_set, heap_index_set;

/* Opens a dump of which everything is counted; the exit status after a complaint. */
int heap_open_dump(struct heap_dump **ret, const char *path, const struct heap_options *o);
/*
 * Opens the index of a dump, building it with progress when there is none; the exit status after a
 * complaint.
 */
int heap_open_index(struct heap **ret, const char *path, const struct heap_options *o);
/* Rows of a table: --limit, or all in a file for programs, or what fits a screen. */
uint64_t heap_rows(const struct heap_options *o, uint64_t on_screen, uint64_t in_file);
/* Classes as a table "classes". sort: its first letter counts, NULL is by shallow size. */
void heap_histogram_table(struct page *p, const struct heap_dump *d, const char *sort,
                          uint64_t limit, bool retained, const char *title);
/* What a dump is, as facts. */
void heap_summary_facts(struct page *p, const struct heap *h);
/* The largest objects by retained size, as a table "dominators". */
void heap_top_table(struct page *p, const struct heap *h, uint64_t limit, const char *title);
/* What holds much more than the rest: sentences, and a table "suspects" for programs. */
void heap_suspects(struct page *p, const struct heap *h);
/* Shows the page as the options say; the exit status. */
int heap_answer(const struct page *p, const struct heap_options *o);
/* Why a dump could not be read, as a person reads it. */
const char *heap_why(int error);
/* Notes what is wrong with a dump that is shown all the same. */
void heap_note_damage(struct page *p, const struct heap_dump *d);
