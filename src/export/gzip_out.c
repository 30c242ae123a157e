/* SPDX-License-Identifier: Apache-2.0 */
#include "export/gzip_out.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <zlib.h>

enum { LEVEL_BYTES = 1 << 22, FAST = 1, GZIP = 16, WINDOW_BITS = 15, MEMORY_LEVEL = 8 };

struct gzip_out {
    FILE *out;
    z_stream z;
    /* what the thread compresses; it belongs to the caller while the thread is not busy */
    struct buf handed;
    uint64_t bytes;
    bool fast, busy, ended, threaded;
    int error;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static void compress_handed(struct gzip_out *g, int flush)
{
    uint8_t out[65536];
    g->z.next_in = g->handed.data;
    g->z.avail_in = (uInt)g->handed.len;
    g->bytes += g->handed.len;
    do {
        g->z.next_out = out;
        g->z.avail_out = sizeof(out);
        deflate(&g->z, flush);
        fwrite(out, 1, sizeof(out) - g->z.avail_out, g->out);
    } while (g->z.avail_out == 0);
    if (buf_error(&g->handed))
        g->error = buf_error(&g->handed);
    buf_clear(&g->handed);
    if (g->bytes >= LEVEL_BYTES && !g->fast && flush == Z_NO_FLUSH) {
        /* zlib may have output of the bytes so far, for which there must be room. */
        g->fast = true;
        g->z.next_out = out;
        g->z.avail_out = sizeof(out);
        while (deflateParams(&g->z, FAST, Z_DEFAULT_STRATEGY) == Z_BUF_ERROR) {
            fwrite(out, 1, sizeof(out) - g->z.avail_out, g->out);
            g->z.next_out = out;
            g->z.avail_out = sizeof(out);
        }
        fwrite(out, 1, sizeof(out) - g->z.avail_out, g->out);
    }
}

static void *compress_all(void *arg)
{
    struct gzip_out *g = arg;
    pthread_mutex_lock(&g->lock);
    while (!g->ended || g->busy) {
        if (!g->busy) {
            pthread_cond_wait(&g->changed, &g->lock);
            continue;
        }
        pthread_mutex_unlock(&g->lock);
        compress_handed(g, Z_NO_FLUSH);
        pthread_mutex_lock(&g->lock);
        g->busy = false;
        pthread_cond_broadcast(&g->changed);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

struct gzip_out *gzip_out_new(FILE *out)
{
    struct gzip_out *g = calloc(1, sizeof(*g));
    if (!g)
        return NULL;
    g->out = out;
    g->handed = BUF(SIZE_MAX / 2);
    if (deflateInit2(&g->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS + GZIP, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(g);
        return NULL;
    }
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    g->threaded = pthread_create(&g->thread, NULL, compress_all, g) == 0;
    return g;
}

/* Passes a buffer to the thread, and returns an empty one in its place. */
static void hand_over(struct gzip_out *g, struct buf *data)
{
    struct buf empty = g->handed;
    g->handed = *data;
    *data = empty;
}

void gzip_out_put(struct gzip_out *g, struct buf *data)
{
    if (!g->threaded) {
        hand_over(g, data);
        compress_handed(g, Z_NO_FLUSH);
        return;
    }
    pthread_mutex_lock(&g->lock);
    while (g->busy)
        pthread_cond_wait(&g->changed, &g->lock);
    hand_over(g, data);
    g->busy = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

int gzip_out_end(struct gzip_out *g)
{
    if (!g)
        return 0;
    if (g->threaded) {
        pthread_mutex_lock(&g->lock);
        g->ended = true;
        pthread_cond_broadcast(&g->changed);
        pthread_mutex_unlock(&g->lock);
        pthread_join(g->thread, NULL);
    }
    compress_handed(g, Z_FINISH);
    int error = g->error;
    deflateEnd(&g->z);
    buf_release(&g->handed);
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    free(g);
    return error;
}
