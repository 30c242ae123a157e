/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session/outcome.h"
#include "agent/session/private.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the messages */
bool session_line_open;

static void add_message(struct session *s, const char *text)
{
    pthread_mutex_lock(&lock);
    buf_printf(&s->messages, "message %s\n", text);
    s->messages_count++;
    pthread_mutex_unlock(&lock);
}

/* Reports to the command that waits for the recording. Returns false if there is none. */
static bool report_to_command(struct session *s, struct buf *line)
{
    int outcome = outcome_file(&s->options);
    for (size_t i = 0; i < line->len; i++)
        if (line->data[i] == '\n' || line->data[i] == '\t')
            line->data[i] = ' ';
    outcome_report(outcome, "", 0, buf_str(line), false);
    return outcome >= 0;
}

/* Reports to the command, or on standard error if there is none. */
static void report_aloud(struct session *s, struct buf *line)
{
    bool print = !report_to_command(s, line);
    if (print && !vm.attached)
        fprintf(stderr, "%shprof: %s\n", session_line_open ? "\n" : "", buf_str(line));
    session_line_open = session_line_open && !print;
}

/* Formats the arguments of a variadic function that follow `format`. */
#define FORMAT(line, format)             \
    do {                                 \
        va_list args;                    \
        va_start(args, format);          \
        buf_vprintf(line, format, args); \
        va_end(args);                    \
    } while (0)

void session_message(struct session *s, const char *format, ...)
{
    _cleanup_(buf_release) struct buf line = BUF(4096);
    FORMAT(&line, format);
    add_message(s, buf_str(&line));
    if (!s->running)
        report_aloud(s, &line);
}

void session_report(struct session *s, const char *format, ...)
{
    _cleanup_(buf_release) struct buf line = BUF(4096);
    FORMAT(&line, format);
    add_message(s, buf_str(&line));
    if (s->running)
        (void)report_to_command(s, &line);
    else
        report_aloud(s, &line);
}

void session_warn(struct session *s, const char *format, ...)
{
    _cleanup_(buf_release) struct buf line = BUF(4096);
    FORMAT(&line, format);
    add_message(s, buf_str(&line));
    report_aloud(s, &line);
}

void session_failed(struct session *s, int error, const char *format, ...)
{
    char text[sizeof(s->failed)];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    if (s->failure == 0) {
        s->failure = error;
        memcpy(s->failed, text, sizeof(text));
    }
    pthread_mutex_unlock(&lock);
    session_message(s, "%s", text);
}

void session_put_messages(struct session *s, struct buf *out, bool reports)
{
    pthread_mutex_lock(&lock);
    buf_bytes(out, s->messages.data, s->messages.len);
    buf_printf(out, "messages_told %u\n", s->messages_reported);
    s->messages_reported = reports ? s->messages_count : s->messages_reported;
    pthread_mutex_unlock(&lock);
}
