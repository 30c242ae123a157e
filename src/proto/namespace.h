/* SPDX-License-Identifier: Apache-2.0 */
/* The namespaces of a VM: which of them are ours, and how to join the others. */
#pragma once

#include "base/macro.h"

#include <stdbool.h>

struct vm;

/* Returns whether the VM's namespace of a kind ("pid") is ours; true if it cannot be determined. */
bool namespace_is_ours(const struct vm *vm, const char *kind);
/*
 * Joins the VM's namespace of a kind unless it is ours; flag is the one that setns(2) has for it.
 * Returns 0 or a negative errno.
 */
int namespace_join(const struct vm *vm, const char *kind, int flag) must_check;
/*
 * Joins like namespace_join. If that is not permitted, joins the VM's user namespace first, in
 * which its creator has the necessary rights; the process then stays in it.
 */
int namespace_join_any(const struct vm *vm, const char *kind, int flag) must_check;
