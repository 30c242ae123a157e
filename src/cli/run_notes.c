/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_notes.h"

#include "base/timed_wait.h"
#include "cli/target.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_LENGTH = 8 << 10, POLL_NS = 100000000 };

/* Prints why an agent could not begin. */
static void report_refusal(const char *text)
{
    _cleanup_(buf_release) struct buf readable = BUF(1 << 20);
    target_put_text(&readable, text);
    complain(buf_str(&readable), NULL, NULL);
}

/*
 * Prints the notes, and why recordings could not begin, from *at on. The agents share the
 * descriptor and its position, so this reads without moving it.
 */
static void print_from(int file, off_t *at)
{
    char text[LINE_LENGTH + 1], *end;
    for (ssize_t n; (n = pread(file, text, LINE_LENGTH, *at)) > 0;) {
        text[n] = 0;
        char *line = text;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            size_t error = strspn(line, "0123456789");
            if (strncmp(line + error, "\t\t", 2) != 0 || !line[error + 2])
                continue;
            if (strncmp(line, "0\t", 2) == 0)
                target_report_note(line + 3);
            else
                report_refusal(line + error + 2);
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
        timed_wait(&n->changed, &n->lock, POLL_NS);
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
    timed_wait_init(&n->changed);
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
