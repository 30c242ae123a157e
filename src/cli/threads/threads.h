/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the verbs of `jvmscope threads` share: options, the timeline, and the part of it that is
 * selected.
 */
#pragma once

#include "analysis/critical_path.h"
#include "analysis/monitor_stats.h"
#include "analysis/unknown_owners.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/only_requests.h"
#include "timeline/timeline.h"

struct thread_options {
    bool json, idle;
    /* patterns; what-if uses lock and method too */
    const char *thread, *class_name, *lock, *method, *end_thread;
    uint64_t from_ns, to_ns, min_ns, limit;
    const char *factor;
    struct only_requests requests;
    const struct request_times *times; /* only during these requests; NULL: always */
};

struct thread_view {
    const struct thread_options *options;
    const char *path;
    struct timeline *t;
    /*
     * With --from or --to, `t` is that part alone for the verbs that follow the critical path
     * (thread_view_part); its time 0 is then the time base_ns of the recording.
     */
    bool separate;
    uint64_t base_ns;
    /* the nodes are not checked: the verb returns -EPROTO when one refers to nothing */
    bool unchecked;
    uint8_t *threads, *objects; /* selected by --thread, by --class */
    struct path_options range;  /* of t */
};

/*
 * Reads the part of the recording that --from and --to select, as `convert` writes it: what the
 * path leads to must not depend on whether the part was cut out first. *ret needs
 * thread_view_release and has no selection of threads or objects. Returns 0 or a negative errno
 * with the reason in why, -ENOEXEC if the file is no flight recording, of which there are no parts.
 */
int thread_view_part(const struct thread_view *v, struct thread_view *ret, uint64_t *ret_whole_ns,
                     struct buf *why) must_check;
void thread_view_release(struct thread_view *v);

/* Returns whether a verb checks the nodes of this timeline itself. */
typedef bool thread_checks(const struct timeline *t, const struct path_options *range);
/*
 * Makes the path lead to the last moment of the thread that --thread selects. Of several threads,
 * prefers one of this exact name, and then the one that ends last.
 */
void thread_view_select_end(struct thread_view *v);
/* Prints that a critical path ends with a wait for a lock that did not end, if it does. */
void thread_view_print_unended(const struct thread_view *v, const struct critical_path *p);
/*
 * Complains that no critical path can be shown or replayed (`what`). r: the negative errno for
 * which it could not be computed. Returns the exit status.
 */
int thread_view_no_path(const struct thread_view *v, const char *what, int r);

/* Complains that the options, --min among them, select no wait. Returns the exit status. */
int thread_view_no_wait(const struct thread_view *v);
/* With --min, prints how many waits are left out because they are shorter. */
void thread_view_print_shorter(const struct thread_view *v, uint64_t shorter);

/* Returns the name of the thread to whose end the path leads, if --end or --thread chose it; or
 * NULL. */
const char *thread_view_end(const struct thread_view *v);
/* Returns the maximum number of rows of a table. */
size_t thread_view_limit(const struct thread_view *v);
/* Returns the number of events that `timeline` shows of what is selected. s: of the same view. */
uint64_t thread_view_events(const struct thread_view *v, const struct monitor_stats *s);

/*
 * Finds the waits in the selected time whose locks' owners are unknown. Returns 0, or the exit
 * status after a complaint.
 */
int thread_view_unknown_owners(const struct thread_view *v, struct unknown_table *ret);
/*
 * Returns whether a table should state that owners of a class's locks are unknown. row: the class's
 * row, or NULL. False when these waits took less than a thousandth of the recording's time in all,
 * as in what-if.
 */
bool thread_view_is_unknown(const struct thread_view *v, const struct tl_unowned *row);
/*
 * Prints, below a table of locks, a line about each class for which thread_view_is_unknown is true.
 */
void thread_view_print_unknown(const struct thread_view *v, const struct unknown_table *u);
/*
 * Writes how many waits for a class's locks have an unknown owner, and for how many ns, as two
 * members of the open object; zeros if row is NULL.
 */
void threads_json_unknown_owners(struct json *j, const struct tl_unowned *row);

/* Writes of what the recording is a part, or null, as the member "part_of" of the open object. */
void threads_json_part(struct json *j, const struct timeline *t);
/* Writes a stack as a JSON array of "package.Class.method:line". */
void threads_json_frames(struct json *j, const struct timeline *t, uint32_t stack);
/* Writes n frames, from number `first` on, like threads_json_frames. */
void threads_json_some_frames(struct json *j, const struct timeline *t, uint32_t first, uint32_t n);
/* Writes a thread's name or null. */
void threads_json_thread(struct json *j, const struct timeline *t, uint32_t thread);
/* Writes the finished JSON to standard output. Returns the exit status. */
int threads_json_print(struct buf *b);
/*
 * Writes a part of a large output to standard output; a small part is kept until there is more.
 * Returns 0 or a negative errno.
 */
int threads_json_print_part(struct buf *b) must_check;

/*
 * These carry out the verbs. They return the exit status, or -EPROTO, unreported, when a node of an
 * unchecked timeline refers to nothing.
 */
int threads_deadlocks(struct thread_view *v);
int threads_path(struct thread_view *v);
int threads_timeline(struct thread_view *v);
int threads_monitors(struct thread_view *v);
int threads_summary(struct thread_view *v);
int threads_what_if(struct thread_view *v);
