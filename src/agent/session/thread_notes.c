/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session/thread_notes.h"

#include "agent/output/dictionary.h"
#include "base/vec.h"

#include <pthread.h>
#include <string.h>

struct thread_note {
    struct thread *thread;
    bool over;
};

static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct thread_note) notes;
static _Atomic uint64_t notes_lost;

static void note(struct thread *t, bool over)
{
    const struct session *s = session_now;
    /* Before VMInit a thread has no name yet; threads_add_existing reports it again. */
    if (!s || !s->out.dictionary || t->own || !vm.live)
        return;
    pthread_mutex_lock(&notes_lock);
    if (vec_push(&notes, ((struct thread_note){t, over})) < 0)
        notes_lost++;
    pthread_mutex_unlock(&notes_lock);
}

static void report_start(struct thread *t, JNIEnv *jni, jthread thread)
{
    note(t, false);
}

static void report_end(struct thread *t, JNIEnv *jni)
{
    note(t, true);
}

void thread_notes_write(struct session *s)
{
    pthread_mutex_lock(&notes_lock);
    __typeof__(notes) taken = notes;
    memset(&notes, 0, sizeof(notes));
    pthread_mutex_unlock(&notes_lock);
    for (size_t i = 0; i < taken.len && s->out.dictionary; i++) {
        if (taken.data[i].over)
            dictionary_thread_end(s->out.dictionary, taken.data[i].thread);
        else if (!taken.data[i].thread->own)
            dictionary_thread_start(s->out.dictionary, taken.data[i].thread);
    }
    vec_release(&taken);
}

const struct thread_listener thread_notes = {report_start, report_end};
