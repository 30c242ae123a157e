/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks which classes are loaded. Each class has a tag in an environment of our own, and the VM
 * reports the tag when the class is unloaded. The tag is the class's serial number, starting at 1,
 * which is not reused while the watch is on. Callable from any attached thread except in signal
 * handlers; no function waits for the VM while the VM may wait for its caller.
 */
#pragma once

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Begins to watch. Call it in the live phase, after the code that walks stacks by the VM's
 * structures was initialized. Returns 0 or -ENOTSUP; on failure nothing is watched and no class
 * counts as unloaded.
 */
int class_watch_start(JNIEnv *jni);
/*
 * Ends the watch and forgets all classes. Their memory stays if another tool has stopped a thread
 * that is tagging a class.
 */
void class_watch_stop(void);

/*
 * Returns the serial number of a class that is not an array; 0 when nothing is watched, or the
 * class cannot be tagged now.
 */
uint32_t class_watch_serial(JNIEnv *jni, jclass c);
/*
 * Returns the serial number of the loaded class with a name ("java/lang/String"; a hidden class is
 * "p/C.0x1234") that the VM keeps at an address. 0 when the address is not known and the name does
 * not identify a single class.
 */
uint32_t class_watch_find(const char *name, uint64_t address);
/* Returns whether the class with this serial number was unloaded. */
bool class_watch_is_unloaded(uint32_t serial);
/*
 * Returns whether classes of this name were loaded and all of them are unloaded; the slashes may be
 * dots.
 */
bool class_watch_none_left(const char *name);
/* Returns the number of classes unloaded so far. */
uint64_t class_watch_unload_count(void);
