/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/net.h"

#include "base/timed_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_MS = 10000 };

struct net {
    int fd;
    pthread_t sender;
    pthread_mutex_t lock;
    pthread_cond_t filled, drained; /* deadline, on the monotonic clock */
    /* NET_BUFFER bytes; [head, tail) modulo the size wait to be sent */
    uint8_t *ring;
    uint64_t head, tail;
    bool over;    /* the connection has failed, so nothing more is sent */
    bool closing; /* the sender ends when everything is sent */
    uint64_t lost;
    atomic_uint users;
};

/* Waits until the socket is writable, or until the deadline. */
static bool wait_writable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int r;
    do
        r = poll(&p, 1, ms);
    while (r < 0 && errno == EINTR);
    return r > 0;
}

/*
 * The sender thread: sends the ring's contents. The socket does not block, so the sender never
 * delays closing.
 */
static void *send_all(void *context)
{
    struct net *n = context;
    pthread_mutex_lock(&n->lock);
    while (!n->over && (!n->closing || n->head != n->tail)) {
        if (n->head == n->tail) {
            pthread_cond_wait(&n->filled, &n->lock);
            continue;
        }
        size_t at = n->head % NET_BUFFER, len = MIN(n->tail - n->head, NET_BUFFER - at);
        pthread_mutex_unlock(&n->lock);
        ssize_t sent = send(n->fd, n->ring + at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        int error = sent < 0 ? errno : 0;
        if (error == EAGAIN || error == EWOULDBLOCK)
            wait_writable(n->fd, 100);
        pthread_mutex_lock(&n->lock);
        if (sent > 0)
            n->head += (size_t)sent;
        else if (error != EAGAIN && error != EWOULDBLOCK && error != EINTR)
            n->over = true;
        if (sent > 0 || n->over)
            pthread_cond_broadcast(&n->drained);
    }
    pthread_cond_broadcast(&n->drained);
    pthread_mutex_unlock(&n->lock);
    return NULL;
}

/*
 * Waits until the sender makes progress. If it makes none, ends the connection and returns false.
 * Requires the lock.
 */
static bool wait_progress(struct net *n)
{
    uint64_t head = n->head;
    struct timespec until = timed_wait_end(NET_PATIENCE_NS);
    while (!n->over && n->head == head)
        if (pthread_cond_timedwait(&n->drained, &n->lock, &until) == ETIMEDOUT && n->head == head)
            n->over = true;
    if (n->over)
        pthread_cond_broadcast(&n->filled);
    return !n->over;
}

int net_write(struct net *n, const void *bytes, size_t len)
{
    const uint8_t *from = bytes;
    pthread_mutex_lock(&n->lock);
    while (len && !n->over) {
        size_t at = n->tail % NET_BUFFER, room = NET_BUFFER - (size_t)(n->tail - n->head);
        size_t part = MIN(MIN(room, NET_BUFFER - at), len);
        if (!part) {
            wait_progress(n);
            continue;
        }
        memcpy(n->ring + at, from, part);
        n->tail += part;
        from += part;
        len -= part;
        pthread_cond_signal(&n->filled);
    }
    n->lost += len;
    pthread_mutex_unlock(&n->lock);
    return len ? -EPIPE : 0;
}

int net_read(struct net *n, void *bytes, size_t size, int wait_ms)
{
    struct pollfd p = {.fd = n->fd, .events = POLLIN};
    int r = poll(&p, 1, wait_ms);
    if (r < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    if (r == 0)
        return -EAGAIN;
    ssize_t got = recv(n->fd, bytes, size, MSG_DONTWAIT);
    if (got < 0)
        return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
    return (int)got;
}

uint64_t net_lost(struct net *n)
{
    pthread_mutex_lock(&n->lock);
    uint64_t lost = n->lost + (n->over ? n->tail - n->head : 0);
    pthread_mutex_unlock(&n->lock);
    return lost;
}

/* Splits "host:port"; an IPv6 address is in brackets. host has room for size bytes. */
static const char *split_address(const char *address, char *host, size_t size)
{
    const char *colon = strrchr(address, ':');
    size_t len = colon ? (size_t)(colon - address) : 0;
    const char *start = address;
    if (!colon || !colon[1])
        return NULL;
    if (len >= 2 && address[0] == '[' && address[len - 1] == ']') {
        start++;
        len -= 2;
    }
    if (!len || len >= size)
        return NULL;
    memcpy(host, start, len);
    host[len] = '\0';
    return colon + 1;
}

static int connect_to(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
    if (fd < 0)
        return -errno;
    socklen_t len = sizeof(error);
    if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
        error = errno;
        if (error == EINPROGRESS)
            error = !wait_writable(fd, CONNECT_MS)                           ? ETIMEDOUT
                    : getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? errno
                                                                             : error;
    }
    if (!error)
        return fd;
    close(fd);
    return -error;
}

static int connect_any(const char *address, struct buf *why)
{
    char host[256];
    const char *port = split_address(address, host, sizeof(host));
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (!port) {
        buf_printf(why, "net=%s: must be host:port", address);
        return -EINVAL;
    }
    int r = getaddrinfo(host, port, &hints, &found);
    if (r != 0) {
        buf_printf(why, "net=%s: %s", address, gai_strerror(r));
        return -EHOSTUNREACH;
    }
    int fd = -EHOSTUNREACH;
    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next)
        fd = connect_to(a);
    freeaddrinfo(found);
    if (fd < 0)
        buf_printf(why, "net=%s: cannot connect: %s", address, strerror(-fd));
    return fd;
}

static int start_sender(struct net *n)
{
    sigset_t all, before;
    pthread_mutex_init(&n->lock, NULL);
    timed_wait_init(&n->filled);
    timed_wait_init(&n->drained);
    /* This thread must not receive the VM's signals. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int r = pthread_create(&n->sender, NULL, send_all, n);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

int net_open(struct net **ret, const char *address, struct buf *why)
{
    int fd = connect_any(address, why);
    if (fd < 0)
        return fd;
    struct net *n = calloc(1, sizeof(*n));
    uint8_t *ring = malloc(NET_BUFFER);
    int r = -ENOMEM;
    if (n && ring) {
        n->fd = fd;
        n->ring = ring;
        n->users = 1;
        r = start_sender(n);
    }
    if (r < 0) {
        buf_printf(why, "net=%s: %s", address, strerror(-r));
        free(ring);
        free(n);
        close(fd);
        return r;
    }
    *ret = n;
    return 0;
}

void net_close(struct net *n)
{
    pthread_mutex_lock(&n->lock);
    n->closing = true;
    pthread_cond_signal(&n->filled);
    while (!n->over && n->head != n->tail)
        wait_progress(n);
    pthread_mutex_unlock(&n->lock);
    pthread_join(n->sender, NULL);
    shutdown(n->fd, SHUT_RDWR);
}

struct net *net_ref(struct net *n)
{
    n->users++;
    return n;
}

void net_unref(struct net *n)
{
    if (!n || --n->users)
        return;
    close(n->fd);
    free(n->ring);
    free(n);
}
