/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What HPROF outputs (format=a, b) name by number: threads, strings, classes, frames and traces.
 * Each is written to the output when it is first asked for, so that it stands before the section
 * that uses it. Any attached thread outside signal handlers; takes out.lock, which the caller must
 * not hold.
 */
#pragma once

#include "agent/out.h"
#include "agent/thread_table.h"
#include "jfr/writer.h"

/* Where numbers start (doc/hprof-differences.md); a trace without frames is TRACE_EMPTY. */
enum { TRACE_EMPTY = 300000, CLASS_FIRST = 100001 };

struct dictionary;

/*
 * For an output that is open; options tell lineno and thread. Both must outlive it. NULL: no
 * memory.
 */
struct dictionary *dictionary_new(struct out *out, const struct options *o);
void dictionary_free(struct dictionary *d);

/*
 * The serial number of a stack; frames[0] runs, their methods are jmethodIDs. thread: its serial,
 * used with thread=y alone. Equal means the same methods and lines. 0 when memory is out.
 */
uint32_t dictionary_trace(struct dictionary *d, JNIEnv *jni, const struct jfr_frame *frames,
                          uint32_t n, uint32_t thread);
/* TRACE_EMPTY, told if it has not been: for what has no stack. */
uint32_t dictionary_empty_trace(struct dictionary *d);
/*
 * "java.util.Vector.addElement", the running method of a trace; "" for an empty one. Stays until
 * free.
 */
const char *dictionary_trace_method(struct dictionary *d, uint32_t trace);
/* Of b: the id of a string. 0: no memory. */
uint64_t dictionary_string(struct dictionary *d, const char *s);
/* Of b: the serial number of a class by its name ("java/lang/String") and id. */
uint32_t dictionary_class(struct dictionary *d, const char *name, uint64_t class_id);

/*
 * Of b: UNLOAD CLASS for what was told and is gone since; one that comes again gets another serial
 * number.
 */
void dictionary_unloaded(struct dictionary *d);

void dictionary_thread_start(struct dictionary *d, const struct thread *t);
void dictionary_thread_end(struct dictionary *d, const struct thread *t);
/* The object id under which a thread is known here. */
uint64_t thread_object_id(uint32_t serial);
/* The thread's serial number of such an id; 0 when it is none. */
uint32_t thread_serial_of_object(uint64_t object);
