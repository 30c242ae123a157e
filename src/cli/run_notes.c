/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_notes.h"

#include "cli/target.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_LENGTH = 8 << 10 };

/*
 * Prints the notes from *at on. The agents share the descriptor and its position, so this reads
 * without moving it.
 */
static void print_from(int file, off_t *at)
{
    char text[LINE_LENGTH + 1], *end;
    for (ssize_t n; (n = pread(file, text, LINE_LENGTH, *at)) > 0;) {
        text[n] = 0;
        char *line = text;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            if (strncmp(line, "0\t\t", 3) == 0 && line[3])
                target_report_note(line + 3);
        }
        if (line == text && n < LINE_LENGTH)
            return; /* the rest of the line is not written yet */
        *at += line == text ? n : line - text;
    }
}

static void *print_notes(void *context)
{
    struct run_notes *n = context;
    off_t at = 0;
    pthread_mutex_lock(&n->lock);
    while (!n->over) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&n->changed, &n->lock, &until);
        pthread_mutex_unlock(&n->lock);
        print_from(n->file, &at);
        pthread_mutex_lock(&n->lock);
    }
    pthread_mutex_unlock(&n->lock);
    print_from(n->file, &at);
    return NULL;
}

bool run_notes_begin(struct run_notes *n, int file)
{
    n->file = file;
    n->over = false;
    pthread_mutex_init(&n->lock, NULL);
    pthread_cond_init(&n->changed, NULL);
    return file >= 0 && pthread_create(&n->thread, NULL, print_notes, n) == 0;
}

void run_notes_end(struct run_notes *n)
{
    pthread_mutex_lock(&n->lock);
    n->over = true;
    pthread_cond_signal(&n->changed);
    pthread_mutex_unlock(&n->lock);
    pthread_join(n->thread, NULL);
}
