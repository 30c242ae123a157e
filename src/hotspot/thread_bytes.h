/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread of the VM has allocated, by the VM's own counter: the bytes of the buffers that the
 * thread has given up and of the objects outside of them, and the used part of its buffer.
 */
#pragma once

#include "hotspot/memory.h"

/* Offsets of fields from the beginning of the VM's thread. */
struct thread_bytes_at {
    int64_t allocated, start, top, end;
};

/*
 * Returns how many bytes a thread of the VM, given the address of the VM's own structure, has
 * allocated. Any thread may call this while the thread itself keeps running. Allocations from a
 * buffer that the thread takes during the call may then be missing, and a buffer that it gives up
 * may be counted twice. Never combines the start of one buffer with the used end of another, whose
 * distance may be as large as the heap. Memory that cannot be read counts as 0.
 */
uint64_t thread_bytes(const struct memory *m, uint64_t thread, const struct thread_bytes_at *at);
