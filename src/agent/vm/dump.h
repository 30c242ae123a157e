/* SPDX-License-Identifier: Apache-2.0 */
/* The VM's own heap dumper, and the sizes of objects in this VM. */
#pragma once

#include "agent/vm/vm.h"
#include "base/map.h"
#include "hprof/redump.h"

/*
 * Finds the dumper (by the native method behind HotSpotDiagnosticMXBean) and measures object
 * layouts. Called once in the live phase, because it is too late when memory is exhausted. Returns
 * 0, or -ENOTSUP when this VM has no known dumper.
 */
int vm_dump_prepare(JNIEnv *jni) must_check;
/* Returns the layouts that vm_dump_prepare has measured. */
const struct hprof_shapes *vm_shapes(void);
/*
 * Collects, then writes all remaining objects to a file, which must not exist. name: the path as a
 * Java string that was created beforehand, for when memory is exhausted; the VM has then just
 * collected and does not do so again. Otherwise NULL. *ret_collected: false when the dump may
 * contain garbage (collect.h). Returns 0 or a negative errno.
 */
int vm_dump(JNIEnv *jni, const char *path, jstring name, bool *ret_collected) must_check;

/*
 * Stores the sizes of instances by class, as reported by the VM; the key is vm_size_key(). Visits
 * every object in the heap. A class name with several sizes has 0. Returns 0, -ENOTSUP or -ENOMEM.
 */
int vm_instance_sizes(JNIEnv *jni, struct map *ret) must_check;
/* Returns the key of a class by its internal name ("java/lang/String"). */
uint64_t vm_size_key(const char *name, size_t len);
