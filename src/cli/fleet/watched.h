/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A VM that `host` records, and how far its ring has been copied. This is kept over restarts of the
 * command. A position is a time on the ring's own clock (ticks of JFR), which is never adjusted. If
 * the machine's clock jumps between two profiles, no sample is counted twice or lost.
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
    uint64_t start;    /* of the process, in the kernel's ticks, because pids are reused */
    char *ring;        /* the ring's file as this machine sees it; NULL: unknown */
    char *query;       /* its origin, as the query of a URL */
    int64_t after;     /* the position up to which the ring has been copied */
    bool attached;     /* the agent is known to record */
    bool is_others;    /* the VM was always recording before this command came; its ring stays */
    bool from_disk;    /* an earlier run of the command found it */
    bool is_listed;    /* in the list of this round */
    bool is_saved;     /* the file contains the current state */
    unsigned failures; /* how often in a row no profile could be taken */
    uint64_t taken_ns; /* when a profile was last taken, by CLOCK_MONOTONIC; 0: never */
    unsigned tries;    /* attempts to copy the rest of the ring of a VM that has ended */
};

struct watched_list {
    VEC(struct watched) vms;
};

void watched_release(struct watched *w);
/* Stores what is known about the VM in the spool's folder, and sets is_saved if that succeeded. */
void watched_save(struct watched *w, const struct spool *s);
/* Removes what watched_save and watched_hold made for the VM. */
void watched_forget(const struct watched *w, const struct spool *s);
/*
 * Links the ring into the spool's folder, until watched_forget. Otherwise an agent that starts
 * might remove it before this process has read it, because agents remove all but the newest rings
 * of VMs that have ended. A ring on another file system gets no link and is read by its own name.
 */
void watched_hold(const struct watched *w, const struct spool *s);
/* Stores the name of the link that watched_hold makes. */
void watched_held(const struct watched *w, const struct spool *s, char path[WATCHED_HELD_LEN]);
/* Reads what earlier runs stored, and what they left in the spool. */
void watched_read_all(struct watched_list *to, const struct spool *s);
