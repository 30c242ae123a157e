/* SPDX-License-Identifier: Apache-2.0 */
/* Running VMs, as /proc and their performance counters show them, in other containers too. */
#pragma once

#include "base/buf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <sys/types.h>

struct vm {
    pid_t pid, inner_pid; /* as we see it, as it sees itself */
    uid_t uid;            /* effective, as we see them */
    gid_t gid;
    int root_fd;          /* its root folder, which stays reachable after its end; -1 in lists */
    char *command;        /* main class or jar with arguments; the command line when the VM publishes nothing */
    char *version;        /* "25.0.1+8-LTS"; NULL when not published */
    bool other_root;      /* its root folder is not ours: a container or a chroot */
    bool attach_disabled; /* -XX:+DisableAttachMechanism */
    bool openj9;
};

/*
 * What is known of a process. 0; -ESRCH, -EACCES (not ours to see), -ENOEXEC (no Java VM), -EAGAIN (one whose start-up is not
 * over, or that was told to leave SIGQUIT alone with -Xrs: to ask it for anything would kill it), -ENOMEM. The caller releases.
 */
int vm_read(struct vm *ret, pid_t pid) must_check;
void vm_release(struct vm *vm);

/* The bytes of the counters that the VM publishes (hotspot/hsperf.h); the caller frees. -ENOENT when it publishes none. */
int vm_counters(const struct vm *vm, uint8_t **ret, size_t *ret_len) must_check;

struct vm_list {
    VEC(struct vm) vms;
};

/* All VMs that we may see, by process id; those of other users that we may not look into are left out. */
int vm_list_read(struct vm_list *ret) must_check;
void vm_list_release(struct vm_list *l);

/*
 * The names under which the VM itself sees mapped files whose base name `wanted` accepts; each is malloc'ed, as is the array,
 * which ends with NULL. -ENOENT when there is none.
 */
int vm_mapped_files(const struct vm *vm, bool (*wanted)(const char *base_name), char ***ret) must_check;

/* A path of the VM's file system as a path of ours, "/proc/self/fd/5/tmp/x", into buf of size bytes. */
char *vm_path(const struct vm *vm, const char *path, char *buf, size_t size);
