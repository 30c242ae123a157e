/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach_load PORT RATE: sends RATE requests per second to a web server on this machine, at fixed
 * times, whether or not the ones before were answered, until standard input ends. Then it prints a
 * line for each request, "DUE LATENCY", in nanoseconds: when it was due on the monotonic clock, and
 * how long after that its answer was there; -1 when there was none.
 *
 * It runs at real-time priority where it may, so that waiting for a processor of its own does not
 * count as waiting for the server.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SENDERS = 16, MOST = 1 << 17, NS_PER_S = 1000000000 };

struct answer {
    int64_t due, latency;
};

static struct sender {
    pthread_t thread;
    int number, n;
    struct answer *answers;
} senders[SENDERS];

static int port, rate;
static int64_t start;
static atomic_bool over;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)NS_PER_S + t.tv_nsec;
}

static int connection(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/*
 * Returns whether the whole response has arrived: its head with a Content-length, and the body.
 */
static int is_whole(char *text, size_t len)
{
    text[len] = 0;
    const char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "content-length:");
    return end && length && len >= (size_t)(end + 4 - text) + strtoul(length + 15, NULL, 10);
}

/* Returns whether a request got a response with status 200. */
static int ask(int fd, long n)
{
    char text[4096];
    int len = snprintf(text, sizeof(text), "GET /?q%ld HTTP/1.1\r\nHost: localhost\r\n\r\n", n);
    if (send(fd, text, (size_t)len, MSG_NOSIGNAL) != len)
        return 0;
    for (size_t got = 0; got < sizeof(text) - 1;) {
        ssize_t r = recv(fd, text + got, sizeof(text) - 1 - got, 0);
        if (r <= 0)
            return 0;
        got += (size_t)r;
        /* or the delayed acknowledgement of one part holds up the next */
        setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &(int){1}, sizeof(int));
        if (is_whole(text, got))
            return strncmp(text, "HTTP/1.1 200 ", 13) == 0;
    }
    return 0;
}

static void *send_all(void *arg)
{
    struct sender *s = arg;
    int fd = connection();
    for (long n = s->number; s->n < MOST; n += SENDERS) {
        int64_t due = start + n * NS_PER_S / rate;
        struct timespec at = {due / NS_PER_S, due % NS_PER_S};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
            ;
        if (over)
            break;
        int answered = ask(fd, n);
        s->answers[s->n++] = (struct answer){due, answered ? now() - due : -1};
        if (!answered) {
            close(fd);
            fd = connection();
        }
    }
    close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    char byte;
    if (argc != 3 || (port = atoi(argv[1])) <= 0 || (rate = atoi(argv[2])) <= 0)
        return 2;
    (void)!sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
    start = now() + NS_PER_S / 10;
    for (int i = 0; i < SENDERS; i++) {
        senders[i].number = i;
        senders[i].answers = calloc(MOST, sizeof(struct answer));
        if (!senders[i].answers ||
            pthread_create(&senders[i].thread, NULL, send_all, &senders[i]) != 0)
            return 1;
    }
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    over = true;
    for (int i = 0; i < SENDERS; i++) {
        pthread_join(senders[i].thread, NULL);
        for (int k = 0; k < senders[i].n; k++)
            printf("%lld %lld\n", (long long)senders[i].answers[k].due,
                   (long long)senders[i].answers[k].latency);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
