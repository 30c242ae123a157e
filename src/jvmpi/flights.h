/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks what threads are currently reporting to the agent. Each object, class and thread is
 * reported once, by the first thread that needs it. Another thread that needs it at the same time
 * must not name it before the agent knows it, so it waits until the handler has returned. It does
 * not wait where it may hold a lock of the agent that the handler may want: within a handler,
 * within a function of the interface, while it holds a raw monitor, or on a thread of the agent. In
 * these places RequestEvent reports immediately the objects that it names.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct thread_entry;

/* Lies on the stack of the reporting thread. Zeroed: nothing to report. */
struct flight {
    uintptr_t key; /* an object's id, or the address of a class's or thread's entry */
    const void *thread;
    struct thread_entry *of; /* the thread's, or NULL */
    bool requested;          /* the handler requested the event itself, so it is not sent again */
    struct flight *next;
};

/*
 * Returns true when the caller must report the object, class or thread with this key and then call
 * flight_end; *reported is set. Returns false when it has been reported or the caller is already
 * reporting it. Waits while another thread reports it.
 */
bool flight_begin(struct flight *f, uintptr_t key, atomic_bool *reported);
/*
 * Like flight_begin, when the caller knows that nothing was reported. Never waits, so it can be
 * called with locks held.
 */
void flight_enter(struct flight *f, uintptr_t key);
/* Ends a flight that has begun. */
void flight_leave(struct flight *f);

/* Ends the flight, or does nothing if it has not begun, as for most objects. */
static inline void flight_end(struct flight *f)
{
    if (f->key)
        flight_leave(f);
}

/* Waits while another thread reports the entry with this key. Call without locks of the layer. */
void flight_wait(uintptr_t key);
/* Sets *reported, because RequestEvent reports the entry with this key. */
void flight_requested(uintptr_t key, atomic_bool *reported);
/* Returns a thread that is reporting the entry with this key, or NULL. */
struct thread_entry *flight_thread(uintptr_t key);
/* Returns whether another thread is reporting the entry with this key. */
bool flight_elsewhere(uintptr_t key);
/* Returns whether the calling thread, as far as is known, holds no lock of the agent. */
bool flight_may_wait(void);
/* Returns whether any thread is reporting something. */
bool flights_any(void);
