/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and describes running VMs, also in other containers, from /proc and from their performance
 * counters.
 */
#pragma once

#include "base/buf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <sys/types.h>

enum { VM_GROUPS = 64 };

struct vm {
    pid_t pid, inner_pid; /* in our pid namespace, in its own */
    uid_t uid;            /* effective ids in our user namespace */
    gid_t gid;
    gid_t groups[VM_GROUPS]; /* supplementary groups; further ones are left out */
    unsigned n_groups;
    int root_fd; /* its root folder, which stays accessible after it has ended; -1 in lists */
    /*
     * the main class or jar with its arguments, or the command line when neither the VM nor that
     * line says which it is
     */
    char *command;
    char *version;   /* such as "25.0.1+8-LTS" or "1.8.0_504"; NULL when not published */
    bool other_root; /* it has another root folder than this process: a container or a chroot */
    bool other_container; /* in lists: it runs in another container than this process */
    /* it has another /tmp than this process: a container, or systemd's PrivateTmp= */
    bool other_tmp;
    bool attach_disabled; /* -XX:+DisableAttachMechanism */
    /*
     * Nothing proves that it takes SIGQUIT as a request to attach: it publishes no counters, its
     * memory may not be read, and some of its arguments are unknown
     */
    bool unverified;
    bool listens;    /* an attach listener has made its socket, or an earlier VM has left it */
    bool takes_quit; /* it handles SIGQUIT, which wakes the attach listener */
    /*
     * SIGQUIT would kill it or reach the program itself, and there is no socket of an attach
     * listener (with -Xrs a VM creates one when it starts): the VM is still starting, or the socket
     * was removed
     */
    bool dies_of_quit;
    bool without_signals; /* -Xrs */
    bool openj9;
    /* Set in lists only; NULL if there is none (proto/container.h). */
    char *container_id, *container_name;
    double uptime_s, cpu_s; /* since the process started; set in lists only */
};

/*
 * Describes a process. Returns 0, -ESRCH, -EACCES (we may not see it), -ENOEXEC (no Java VM),
 * -ENOMEM or another negative errno. On success the caller releases *ret. A VM whose dies_of_quit
 * is set may be observed from outside but must not be sent a request.
 */
int vm_read(struct vm *ret, pid_t pid) must_check;
void vm_release(struct vm *vm);

/*
 * Returns why the VM must not be sent the signal that wakes its attach listener, or NULL. It would
 * end the VM, or make it print a thread dump.
 */
const char *vm_refusal_to_wake(const struct vm *vm);
/*
 * Returns why the VM must not be sent a request, with what would change that, or NULL. Does not ask
 * whether the VM is stopped (vm_is_stopped).
 */
const char *vm_refusal(const struct vm *vm);

/*
 * Stores the contents of the counters that the VM publishes (hotspot/hsperf.h), which the caller
 * frees, and their length. Returns 0 or a negative errno: -ENOENT when it publishes none.
 */
int vm_counters(const struct vm *vm, uint8_t **ret, size_t *ret_len) must_check;

/*
 * Returns whether the socket of the VM's attach listener lies in tmp, the VM's /tmp. An earlier VM
 * of the same id may have left it.
 */
bool vm_has_socket(const struct vm *vm, int tmp);

/*
 * Returns whether the process is stopped by SIGSTOP or a debugger. It does not answer until it
 * continues.
 */
bool vm_is_stopped(const struct vm *vm);
/*
 * Returns whether the main class, or the jar's name without its folders, matches a pattern
 * (base/pattern.h).
 */
bool vm_matches(const struct vm *vm, const char *pattern);
/* Returns the process to which a thread of this id belongs, or 0 if that cannot be seen. */
pid_t vm_process_of(pid_t thread);
/* Returns whether the process has ended, even if nobody has waited for it yet. */
bool vm_has_ended(const struct vm *vm);
/* Returns whether a signal sent to the process is still pending. */
bool vm_has_pending(const struct vm *vm, int signal_number);

struct vm_list {
    VEC(struct vm) vms;
    /*
     * Programs that `java` runs and that we may not inspect: pid, uid, command and the times of a
     * list are known
     */
    VEC(struct vm) left_out;
    size_t unknown; /* other programs that we may not inspect, which may be VMs or not */
    bool hidden;    /* /proc does not show us the processes of other users (hidepid) */
};

/*
 * Lists all VMs, by process id. On success the caller releases *ret. Returns 0 or a negative errno.
 */
int vm_list_read(struct vm_list *ret) must_check;
void vm_list_release(struct vm_list *l);

/*
 * Stores the names under which the VM itself sees those mapped files whose base name `wanted`
 * accepts. The array ends with NULL; it and each name are allocated by malloc. Returns 0 or a
 * negative errno: -ENOENT when no such file is mapped.
 */
int vm_mapped_files(const struct vm *vm, bool (*wanted)(const char *base_name),
                    char ***ret) must_check;
