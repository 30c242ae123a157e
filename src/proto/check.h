/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines beforehand what the command can do with a VM, and for everything else names the one
 * right or setting that is missing. No request and no signal is sent to the VM, but files are
 * created in its folders and removed, as an attach would do.
 */
#pragma once

#include "proto/vm.h"

enum check_verdict {
    CHECK_YES,
    CHECK_PERHAPS, /* it cannot be known from outside; `why` says what it depends on */
    CHECK_NO,
};

struct check {
    const char *name; /* "attach" */
    enum check_verdict verdict;
    char *why; /* one sentence; NULL when there is nothing to say */
};

enum { CHECKS = 5 };

/* Fills in all checks, in the order in which they are shown. Returns 0, or -ENOMEM. */
int check_vm(const struct vm *vm, struct check ret[CHECKS]) must_check;
void check_release(struct check checks[CHECKS]);

/*
 * Returns about how many bytes a heap dump takes: what the heap held after the last collection, but
 * at least DUMP_LEAST, also when the VM's counters cannot be read.
 */
uint64_t check_dump_size(const struct vm *vm);

/* Returns why vm_counters failed for the VM, as half a sentence. */
const char *check_why_no_counters(const struct vm *vm);

/*
 * Returns whether the process runs an image that GraalVM's native-image made of a Java program: it
 * is not a VM that can load agents.
 */
bool check_is_native_image(pid_t pid);
