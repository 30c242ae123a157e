/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which classes are loaded: every one has a tag in an environment of our own, which the VM tells of
 * when the class is gone. A tag is a class's serial number, from 1 on, and never used again while
 * the watch is on. Any attached thread outside of signal handlers; none of these waits for the VM
 * while the VM may wait for it.
 */
#pragma once

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * In the live phase, after whatever walks stacks by the VM's structures. 0, -ENOTSUP or -ENOMEM;
 * then nothing is watched and nothing is gone.
 */
int class_watch_start(JNIEnv *jni);
void class_watch_stop(void);

/* The serial number of a class that is no array; 0 when nothing is watched. */
uint32_t class_watch_serial(JNIEnv *jni, jclass c);
/*
 * That of the loaded class of a name ("java/lang/String", a hidden one "p/C.0x1234") that the VM
 * has at an address; 0: not known, and there are several of the name or none.
 */
uint32_t class_watch_find(const char *name, uint64_t address);
bool class_watch_gone(uint32_t serial);
/* Whether there were classes of this name and all are gone; the slashes may be dots. */
bool class_watch_none_left(const char *name);
/* How many have gone so far. */
uint64_t class_watch_goings(void);
