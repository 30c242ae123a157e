/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files points*.c share: a row of the table of methods that get probes, and the pieces of
 * code that are inserted. All functions that return int return a negative errno on failure; those
 * that are members of `edit` return 1 if they inserted something and 0 if there is nothing to do.
 */
#pragma once

#include "agent/capture/requests/requests.h"
#include "agent/instrument/instrument.h"

#include <string.h>

#define PROBE "java/lang/JvmscopeRequests"
#define JUC   "java/util/concurrent/"

struct point {
    /* a '*' at the end of the class's name stands for any rest */
    const char *class, *method;
    const char *descriptor; /* the beginning of the descriptor; NULL: any descriptor */
    int (*edit)(const struct instrument_class *c, struct edit *e, const struct point *p);
    /* method of the probe class, for point_entry and others with its descriptor */
    const char *probe;
    const char *type;  /* the parameter to pass; the owner of the call within the method */
    int number;        /* an enum request_way, request_kind or request_child_kind */
    const char *args;  /* what is pushed for the probe (point_push) */
    const char *leave; /* what is pushed when the method returns: a status */
};

/* ---- points_code.c: pieces of code ---- */

/*
 * Appends code that pushes values, each described by a word:
 *
 *     0 to 9      the reference in this local variable; 0 is `this`
 *     J2, I1      the long in local variable 2, the int in 1
 *     r           the reference that the method returns
 *     p           the first parameter of the type p->type
 *     #           p->number
 *     =text       a string
 *     v:a/B.m(D)R the result of a virtual method of the object on the stack; its parameters come
 *                 before it. i: of an interface's method, c: of nothing but a cast to a/B
 *     f:a/B.m:D   a field of the object on the stack, which is of the class itself
 *     s:a/B.m(D)R the result of a static method; its parameters come before it
 *     g:a/B.m:D   a static field of any class
 *
 * A question mark before v: or i: requires that the constants of the class name the method: the
 * class calls it, so this version of the server has it. Returns 0, 1 if something does not exist,
 * or an error.
 */
int point_push(const struct instrument_class *c, struct edit *e, const struct point *p,
               const char *words, struct buf *code) must_check;
/* Appends what point_push appends, and the call of the probe that p->probe names. */
int point_push_and_call(const struct instrument_class *c, struct edit *e, const struct point *p,
                        struct buf *code) must_check;

enum { POINT_STACK = 8 }; /* operand stack slots, enough for the words of any row */

/*
 * Append a call of a static method of the probe class, and of a virtual method of the class
 * `owner`. Return 0 or a negative errno.
 */
int point_probe(struct edit *e, struct buf *code, const char *name,
                const char *descriptor) must_check;
int point_virtual(struct edit *e, struct buf *code, const char *owner, const char *name,
                  const char *descriptor) must_check;
/* Inserts code before each return. */
int point_returns(struct edit *e, const struct buf *code, unsigned stack) must_check;
/*
 * Has the probe called with each exception that leaves the method and with the long in a local
 * variable. Returns 1, or a negative errno.
 */
int point_thrown(struct edit *e, const char *probe, int local) must_check;
/*
 * Returns the slot of the first parameter of the type p->type; 0 if no type is given; -1 if the
 * method has no such parameter.
 */
int point_slot(const struct instrument_class *c, const struct edit *e, const struct point *p);
/* Returns whether the constants of the class name this method, so that the method must exist. */
bool point_calls(const struct instrument_class *c, const char *owner, const char *name,
                 const char *descriptor);
/*
 * Makes each call of the method a request. The code `first` leaves the request's token on the
 * stack; `status` leaves it there and pushes an int, or is NULL.
 */
int point_request(struct edit *e, struct buf *first, unsigned stack, const struct buf *status);

static inline bool point_begins(struct str s, const char *with)
{
    size_t n = strlen(with);
    return s.len >= n && memcmp(s.data, with, n) == 0;
}

/* ---- members of `edit` ---- */

#define POINT(name) \
    int name(const struct instrument_class *c, struct edit *e, const struct point *p)
/* Calls the probe with the values that p->args pushes: at the beginning, or before each return. */
POINT(point_entry);
POINT(point_exit);
/* A call of the method is a request, or a call of another server that a request makes. */
POINT(point_within);
POINT(point_child_within);
/* points_hand.c */
POINT(point_takes);
POINT(point_timer_takes);
POINT(point_runs);
POINT(point_is_run);
/* points_servers.c */
POINT(point_tomcat);
POINT(point_tomcat_async);
/*
 * The request may outlive the call; it belongs to the first parameter, or to the value that p->args
 * describes.
 */
POINT(point_suspended);
POINT(point_paused);
POINT(point_listener);
POINT(point_netty_read);
/* points_calls.c */
POINT(point_pool);
/* The method sends a request to another server and returns a future of the response. */
POINT(point_sent);
/* The method, which sends a request that was put off, returns its response. */
POINT(point_answered);
#undef POINT

/*
 * ---- points_calls.c: the names of drivers' classes contain that of the interface that they
 * implement ----
 */

bool point_is_sql(struct str class_name);
int point_sql(const struct instrument_class *c, struct edit *e, struct str name,
              struct str descriptor);
