/* SPDX-License-Identifier: Apache-2.0 */
/* The VM's own heap dumper, and how large objects are in this VM. */
#pragma once

#include "agent/vm.h"
#include "base/map.h"
#include "hprof/redump.h"

/*
 * Finds the dumper (by the native method behind HotSpotDiagnosticMXBean) and measures shapes; once,
 * in the live phase: at exhausted memory there is no second chance. -ENOTSUP: this VM has no dumper
 * that we know.
 */
int vm_dump_prepare(JNIEnv *jni) must_check;
const struct hprof_shapes *vm_shapes(void);
/*
 * Collects, then writes all objects that are left to a file that must not exist. name is the same
 * path as a Java string, made beforehand for the day when memory is exhausted, or NULL.
 * *ret_collected: false when garbage may be in the dump (ending.h).
 */
int vm_dump(JNIEnv *jni, const char *path, jstring name, bool *ret_collected) must_check;

/*
 * Sizes of instances by class, as the VM reports them: key is vm_size_key(), value the size. Looks
 * at every object in the heap. A class whose name stands for several sizes has 0.
 */
int vm_instance_sizes(JNIEnv *jni, struct map *ret) must_check;
/* The key of a class by its internal name ("java/lang/String"). */
uint64_t vm_size_key(const char *name, size_t len);
