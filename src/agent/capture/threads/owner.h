/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of monitors and synchronizers. */
#pragma once

#include "agent/capture/threads/waiters.h"

/* Determines where this VM keeps the owners of monitors, once. Must be called first. */
void owner_init(JNIEnv *jni);
/* Returns the VM's own structure of the calling thread; 0: unknown. */
uint64_t owner_vm_thread(JNIEnv *jni);
/*
 * Returns the owner of a synchronizer as an id in the recording, or 0 if it has none or the owner
 * is unknown. *ret_owned is
 * whether the synchronizer is of a kind that has an owner.
 */
uint64_t owner_of_synchronizer(JNIEnv *jni, jobject synchronizer, bool *ret_owned);
/*
 * Returns the owner of the monitor that the calling thread is about to enter, as an id in the
 * recording; 0: unknown. *ret_monitor receives the address of the VM's monitor, if that is known.
 */
uint64_t owner_of_pending(JNIEnv *jni, jobject monitor, uint64_t *ret_monitor);
/*
 * Returns the address of the VM's monitor that a platform thread, or the virtual thread that it
 * carries, waits to enter; 0: none, or unknown. Any thread may ask.
 */
uint64_t owner_awaited_monitor(const struct thread *t);
/*
 * Stores the owner of a VM monitor, given the monitor's address, which may no longer be valid.
 * Returns false when it cannot be determined: the owner is then assumed to be the same as when the
 * thread began to wait.
 */
bool owner_of_monitor(uint64_t monitor, uint64_t *ret_id);
