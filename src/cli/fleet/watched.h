/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A VM that host records, and up to where its ring has been taken, over restarts of the command. A
 * position is a time on the ring's own clock (ticks of JFR), which is never adjusted. The machine's
 * clock may jump between two profiles without a sample being counted twice or lost.
 */
#pragma once

#include "base/macro.h"
#include "base/vec.h"
#include "cli/fleet/spool.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { WATCHED_HELD_LEN = 600 };

struct watched {
    pid_t pid;
    uint64_t start;    /* of the process, in the kernel's ticks: pids are used again */
    char *ring;        /* the ring's file as this machine sees it; NULL: unknown */
    char *query;       /* who it is, for the URL */
    int64_t after;     /* up to which position it has been taken */
    bool attached;     /* the agent is known to record */
    bool from_disk;    /* an earlier run of the command found it */
    bool is_there;     /* in the list of this round */
    bool is_saved;     /* the file contains the current state */
    unsigned failures; /* how often in a row no profile could be taken */
    uint64_t taken_ns; /* when that was, by CLOCK_MONOTONIC; 0: never */
    unsigned tries;    /* to take the rest of a VM that has ended */
};

struct watched_list {
    VEC(struct watched) vms;
};

void watched_release(struct watched *w);
/* Stores what is known of the VM in the spool's folder, and whether that succeeded. */
void watched_save(struct watched *w, const struct spool *s);
void watched_forget(const struct watched *w, const struct spool *s);
/*
 * Gives the ring a second name in the spool's folder, until the VM is forgotten. Agents that start
 * remove all but the newest rings of VMs that have ended, which this process may not have seen yet.
 * A ring on another file system gets no second name and is read by its own.
 */
void watched_hold(const struct watched *w, const struct spool *s);
/* That name. */
void watched_held(const struct watched *w, const struct spool *s, char path[WATCHED_HELD_LEN]);
/* Reads what earlier runs stored, and what they left in the spool. */
void watched_read_all(struct watched_list *to, const struct spool *s);
