/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What HPROF outputs (format=a, b) refer to by number: threads, strings, classes, frames and
 * traces. Each is written to the output when it is first requested, so that it precedes the section
 * that uses it. Any attached thread except in signal handlers; takes out.lock, which the caller
 * must not hold.
 */
#pragma once

#include "agent/output/out.h"
#include "agent/vm/thread_table.h"
#include "jfr/writer.h"

/* First numbers (doc/hprof-differences.md); a trace without frames is TRACE_EMPTY. */
enum { TRACE_EMPTY = 300000, CLASS_FIRST = 100001 };

struct dictionary;

/*
 * Creates the dictionary of an open output; the options determine whether it has line numbers and
 * threads. The output must outlive the dictionary. Returns NULL when out of memory.
 */
struct dictionary *dictionary_new(struct out *out, const struct options *o);
void dictionary_free(struct dictionary *d);

/*
 * Returns the serial number of a stack with frames[0] innermost; the methods are jmethodIDs.
 * thread: its serial, used only with thread=y. Stacks with the same methods and lines have the same
 * number. Returns 0 when out of memory.
 */
uint32_t dictionary_trace(struct dictionary *d, JNIEnv *jni, const struct jfr_frame *frames,
                          uint32_t n, uint32_t thread);
/*
 * Returns TRACE_EMPTY, for events without a stack, and writes that trace unless it has been
 * written.
 */
uint32_t dictionary_empty_trace(struct dictionary *d);
/*
 * Returns the innermost method of a trace, as "java.util.Vector.addElement"; "" for an empty trace.
 * Valid until dictionary_free.
 */
const char *dictionary_trace_method(struct dictionary *d, uint32_t trace);
/*
 * Returns the serial number of a class, given its name ("java/lang/String") and id; a new class is
 * written to HPROF records. Returns 0 when out of memory.
 */
uint32_t dictionary_class(struct dictionary *d, const char *name, uint64_t class_id);

/*
 * Writes UNLOAD CLASS (format b) for written classes that have been unloaded since. A class that is
 * loaded again receives another serial number.
 */
void dictionary_unloaded(struct dictionary *d);

/* Writes that a thread has started, unless that has been written. */
void dictionary_thread_start(struct dictionary *d, const struct thread *t);
/* Writes that a thread has ended, if its start was written. */
void dictionary_thread_end(struct dictionary *d, const struct thread *t);
/* Returns the object id by which a thread is identified here. */
uint64_t dictionary_thread_object(uint32_t serial);
/*
 * Returns the serial number of the thread with an object id of dictionary_thread_object; 0 if the
 * id is another one.
 */
uint32_t dictionary_thread_of_object(uint64_t object);
