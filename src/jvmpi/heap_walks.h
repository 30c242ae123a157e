/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that enclose the heap walks and collections of the layer. */
#pragma once

/*
 * Enclose each call of JVM TI that walks the whole heap or starts a collection, and may be nested.
 * The calling thread is quiet (my.h) between them. While another thread ends the VM,
 * heap_walk_begin waits, for three seconds at most.
 */
void heap_walk_begin(void);
void heap_walk_end(void);
/*
 * Since JDK 16 a VM can hang when it ends: the ending thread reports dead objects, the service
 * thread waits for it and cannot stop, and a walk or a collection of a third thread stops the
 * ending thread first and then waits for the service thread. Between these two calls only the
 * calling thread, which is the ending one, begins a walk. heap_walks_hold waits until those in
 * progress have ended; heap_walks_release does nothing if it was not called.
 */
void heap_walks_hold(void);
void heap_walks_release(void);
