/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests=: the requests that a server handles, and which threads work for each of them.
 *
 * points.c and the files of that name insert probes where requests begin and end and where work is
 * handed from one thread to another; the probes are in JvmscopeRequests.java, which looks into the
 * tables of tables.h and calls the natives of natives.c. works.c knows which request each thread
 * works for, follow.c begins and ends requests, and kept.c decides whether their details are kept.
 * names.c names and counts requests, tasks.c names scheduled tasks. requests.c is the capture and
 * writes the events.
 */
#pragma once

#include "agent/capture/requests/names.h"
#include "agent/session/session.h"
#include "base/strpool.h"
#include "jfr/writer.h"

#include <stdatomic.h>

enum request_kind {
    REQUEST_SERVLET,
    REQUEST_HTTP,
    REQUEST_GRPC,
    REQUEST_MESSAGE,
    REQUEST_TASK,
    REQUEST_METHOD, /* a call of a method that the option names */
    REQUEST_KINDS
};

/* How a work reached its thread. The probe class has the same numbers. */
enum request_way {
    WAY_ENTRY,
    WAY_EXECUTOR,
    WAY_FORK_JOIN,
    WAY_FUTURE,
    WAY_THREAD,
    WAY_TIMER,
    WAY_ASYNC,
    WAY_CANCELLED, /* it did not: the task was cancelled while it was in a queue */
    REQUEST_WAYS
};

/* What a request did elsewhere. */
enum request_child_kind { CHILD_JDBC, CHILD_POOL, CHILD_HTTP, CHILD_MESSAGE, CHILD_KINDS };

/* Why the details of a request are in the recording. */
enum request_kept { KEPT_NOT, KEPT_ALL, KEPT_SAMPLE, KEPT_SLOW, KEPT_WAYS };

/* A thread worked for a request. Threads are ids of the recording; 0: unknown or none. */
struct method;

struct request_work {
    uint64_t start, ns, thread, submitter, queued_ns;
    enum request_way way;
};

/* A statement, a connection or a call of another server. Texts are constants of the recording. */
struct request_child {
    uint64_t start, ns, thread, name, peer, exception; /* peer, exception 0: none */
    int64_t rows;                                      /* -1: unknown */
    enum request_child_kind kind;
    uint8_t trace[16], span[8]; /* as it was sent to the other server; trace 0: none was sent */
};

/* A request that has ended. */
struct request_end {
    uint64_t id, parent, start, ns, thread, end_thread;
    struct request_name *name;
    enum request_kind kind;
    int status;
    int64_t bytes;
    const char *exception;    /* NULL: none */
    const char *trace, *span; /* of the caller, in hexadecimal; NULL: none */
    enum request_kept kept;
    uint64_t one_of; /* how many requests it was chosen from at random; 0: it was not */
};

/* ---- requests.c: the events ---- */

extern struct jfr_writer *requests_jfr;

void requests_put(const struct request_end *r);
void requests_put_work(uint64_t request, const struct request_work *w);
void requests_put_child(uint64_t request, const struct request_child *c);
/*
 * Returns a text as a constant of the recording. The number of different texts is limited; all
 * further ones share one constant.
 */
uint64_t request_text(const char *text);
/*
 * Counts n more things as lost, because the recording had no room for them or was not supposed to
 * contain them.
 */
void requests_lose(enum jfr_loss loss, uint64_t n);

/* ---- following requests: follow.h ---- */

/* Creates the tables, before the probe class is defined. Returns 0, or -ENOMEM. */
int requests_load_follow(void) must_check;
/*
 * Begins to follow requests, with empty tables. In a VM that was already running the probes do
 * nothing until follow_open_up is called. Returns 0, or a negative errno with a sentence in why.
 */
int follow_start(JNIEnv *jni, struct buf *why) must_check;
/*
 * Defines the probe class, unless that has been done. Returns 0 or a negative errno. Any thread,
 * but never two at once.
 */
int follow_prepare(JNIEnv *jni);
/* Returns, once, whether the VM has refused the probe class. */
bool follow_was_refused(void);
void follow_open_up(void);
/*
 * After this returns, no native method of the probe begins. follow_is_idle() returns whether none
 * is in progress either (common/inside.h).
 */
void follow_stop(void);
bool follow_is_idle(void);
/* Sets how many details may be kept from now on. Called ten times a second. */
void requests_budget_details(uint64_t now);
/*
 * Has the details of one in 4^level of the usual number of requests written; 0: of as many as there
 * is room for.
 */
void requests_reduce(unsigned level);
/* Has one of 4^level requests counted, which stands for all; 0: all are counted. */
void requests_count_fewer(unsigned level);
/* Reports to the recording what was lost because the tables were full. */
void follow_losses(struct jfr_writer *w);
/*
 * Reports to triggers the requests that are still open and have exceeded the triggers' limits.
 * Requires the session's lock.
 */
void requests_report_running(uint64_t now);
/*
 * Return the number of requests that are open, and the number of requests that have begun so far.
 */
uint64_t follow_open(void);
uint64_t follow_begun(void);
/* Returns whether these are estimates, because not each request was counted. */
bool follow_is_estimated(void);
/*
 * Called when a thread begins to run, and when it ends. The latter returns the thread's Java id, or
 * 0 when nothing is recorded.
 */
void follow_thread_started(JNIEnv *jni, jthread thread);
uint64_t follow_thread_ended(JNIEnv *jni, jthread thread);

/* ---- tasks.c: the names of scheduled tasks ---- */

/*
 * Names a task by its class. Returns false when the task is housekeeping of the JDK, a server or a
 * pool.
 */
bool task_name(JNIEnv *jni, jobject task, unsigned *ret);

/* ---- points.c ---- */

/* patterns: those of the option, separated by ':'; "auto" among them names no method. */
int points_on(const char *patterns, JNIEnv *jni, struct buf *why) must_check;
void points_off(JNIEnv *jni);
/* Returns whether a request is in progress while this method runs. */
bool points_is_request(const struct method *m);
