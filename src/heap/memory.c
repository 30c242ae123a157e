/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_ARRAYS = 128 };

static struct {
    pthread_mutex_t lock;
    uint64_t limit, used, spilled;
    const char *folder;

    struct {
        void *memory;
        uint64_t bytes;
        int file; /* -1 if none */
    } arrays[MAX_ARRAYS];
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

void heap_memory_limit(uint64_t limit, const char *folder)
{
    state.limit = limit;
    state.folder = folder;
}

static void *map_file(uint64_t bytes, int *ret_file)
{
    int fd = open(state.folder ? state.folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return MAP_FAILED;
    /* Allocate the blocks, so that a store into the mapping cannot hit a full disk. */
    void *memory = MAP_FAILED;
    if (posix_fallocate(fd, 0, (off_t)bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        close(fd);
    else
        *ret_file = fd;
    return memory;
}

void *heap_memory(uint64_t bytes)
{
    void *memory = MAP_FAILED;
    bytes = bytes ? bytes : 1;
    pthread_mutex_lock(&state.lock);
    int free_row = 0;
    while (free_row < MAX_ARRAYS && state.arrays[free_row].memory)
        free_row++;
    if (free_row < MAX_ARRAYS) {
        int file = -1;
        if (state.limit && state.used + bytes > state.limit) {
            memory = map_file(bytes, &file);
        } else {
            memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (memory != MAP_FAILED && bytes >= (8 << 20))
                madvise(memory, bytes, MADV_HUGEPAGE);
        }
        if (memory != MAP_FAILED) {
            state.arrays[free_row].memory = memory;
            state.arrays[free_row].bytes = bytes;
            state.arrays[free_row].file = file;
            state.used += file < 0 ? bytes : 0;
        }
    }
    pthread_mutex_unlock(&state.lock);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Resizes the memory of an array if it may stay in memory. Returns NULL if it cannot. */
static void *resize(int row, uint64_t bytes)
{
    const uint64_t before = state.arrays[row].bytes;
    if (state.arrays[row].file >= 0 || (state.limit && state.used - before + bytes > state.limit))
        return NULL;
    void *memory = mremap(state.arrays[row].memory, before, bytes, MREMAP_MAYMOVE);
    if (memory == MAP_FAILED)
        return NULL;
    state.used += bytes - before;
    state.arrays[row].memory = memory;
    state.arrays[row].bytes = bytes;
    return memory;
}

void *heap_memory_again(void *old, uint64_t bytes)
{
    void *memory = NULL;
    pthread_mutex_lock(&state.lock);
    for (int i = 0; old && !memory && i < MAX_ARRAYS; i++) {
        if (state.arrays[i].memory == old)
            memory = resize(i, bytes ? bytes : 1);
    }
    pthread_mutex_unlock(&state.lock);
    if (memory)
        return memory;
    heap_memory_free(old);
    return heap_memory(bytes);
}

void heap_memory_free(void *memory)
{
    if (!memory)
        return;
    pthread_mutex_lock(&state.lock);
    for (int i = 0; i < MAX_ARRAYS; i++) {
        if (state.arrays[i].memory != memory)
            continue;
        munmap(memory, state.arrays[i].bytes);
        if (state.arrays[i].file < 0) {
            state.used -= state.arrays[i].bytes;
        } else {
            struct stat st;
            state.spilled +=
                fstat(state.arrays[i].file, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
            close(state.arrays[i].file);
        }
        state.arrays[i].memory = NULL;
        break;
    }
    pthread_mutex_unlock(&state.lock);
}

uint64_t heap_memory_spilled(void)
{
    return state.spilled;
}
