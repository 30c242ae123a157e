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

/* Starts the thread; false without a file (-1) or a thread. */
bool run_notes_begin(struct run_notes *n, int file);
/* Ends it once all that was written is printed. */
void run_notes_end(struct run_notes *n);
