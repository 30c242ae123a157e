/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the notes of a program's agents while the program runs. A thread reads the memory file
 * into which the agents write the outcomes of their recordings; a line without a path is a note.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct run_notes {
    int file;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
};

/*
 * Starts the thread. Returns false, and run_notes_end must not be called, if it cannot be started
 * or `file` is -1.
 */
bool run_notes_begin(struct run_notes *n, int file);
/* Waits until the thread has printed everything that was written, and ends it. */
void run_notes_end(struct run_notes *n);
