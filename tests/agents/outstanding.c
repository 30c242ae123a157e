/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: counts the memory that libhprof.so has allocated or mapped and not released.
 * Signal 64 writes it to the file that OUTSTANDING names: the bytes that each call instruction
 * of the agent has allocated, and the sums of what is allocated and mapped. What the C library
 * allocates for the agent is not counted.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

enum { SLOT_BITS = 21, SLOTS = 1 << SLOT_BITS };

/* The allocations of the whole process, because anyone may release them: open addressing. */
static struct {
    void *p; /* NULL: never used; RELEASED: free again */
    const void *caller;
    size_t size;
} allocations[SLOTS];

#define RELEASED ((void *)1)

static pthread_spinlock_t lock;
static int64_t mapped;
static size_t missing; /* allocations without a place in the table */
static int ready;

static size_t slot_of(const void *p)
{
    return (size_t)(((uintptr_t)p >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - SLOT_BITS));
}

static void *allocated(void *p, size_t size, const void *caller)
{
    if (!p || !ready)
        return p;
    pthread_spin_lock(&lock);
    size_t i = slot_of(p), n = 0;
    for (; n < SLOTS && (uintptr_t)allocations[i].p > 1; n++)
        i = (i + 1) % SLOTS;
    if (n < SLOTS) {
        allocations[i].p = p;
        allocations[i].caller = caller;
        allocations[i].size = size;
    } else {
        missing++;
    }
    pthread_spin_unlock(&lock);
    return p;
}

static void released(const void *p)
{
    if (!p || !ready)
        return;
    pthread_spin_lock(&lock);
    size_t i = slot_of(p);
    for (size_t n = 0; n < SLOTS && allocations[i].p; n++, i = (i + 1) % SLOTS)
        if (allocations[i].p == p) {
            allocations[i].p = RELEASED;
            break;
        }
    pthread_spin_unlock(&lock);
}

static int is_agent(const void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libhprof.so");
}

void *malloc(size_t size)
{
    return allocated(__libc_malloc(size), size, __builtin_return_address(0));
}

void *calloc(size_t n, size_t size)
{
    return allocated(__libc_calloc(n, size), n * size, __builtin_return_address(0));
}

void *realloc(void *old, size_t size)
{
    released(old);
    return allocated(__libc_realloc(old, size), size, __builtin_return_address(0));
}

void *reallocarray(void *old, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        return NULL;
    released(old);
    return allocated(__libc_realloc(old, n * size), n * size, __builtin_return_address(0));
}

int posix_memalign(void **p, size_t alignment, size_t size)
{
    *p = allocated(__libc_memalign(alignment, size), size, __builtin_return_address(0));
    return *p ? 0 : 12;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return allocated(__libc_memalign(alignment, size), size, __builtin_return_address(0));
}

char *strndup(const char *text, size_t limit)
{
    size_t n = strnlen(text, limit);
    char *p = allocated(__libc_malloc(n + 1), n + 1, __builtin_return_address(0));
    if (p) {
        memcpy(p, text, n);
        p[n] = 0;
    }
    return p;
}

char *strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *p = allocated(__libc_malloc(n), n, __builtin_return_address(0));
    return p ? memcpy(p, text, n) : NULL;
}

void free(void *p)
{
    released(p);
    __libc_free(p);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    void *p = (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
    if (ready && p != MAP_FAILED && !(flags & MAP_FIXED) && is_agent(__builtin_return_address(0)))
        __atomic_fetch_add(&mapped, (int64_t)size, __ATOMIC_RELAXED);
    return p;
}

int munmap(void *p, size_t size)
{
    int r = (int)syscall(SYS_munmap, p, size);
    if (ready && !r && is_agent(__builtin_return_address(0)))
        __atomic_fetch_sub(&mapped, (int64_t)size, __ATOMIC_RELAXED);
    return r;
}

static void write_outstanding(void)
{
    static struct {
        const void *caller;
        size_t bytes;
    } callers[4096];

    size_t n_callers = 0, bytes = 0;
    pthread_spin_lock(&lock);
    for (size_t i = 0; i < SLOTS; i++) {
        if ((uintptr_t)allocations[i].p <= 1 || !is_agent(allocations[i].caller))
            continue;
        bytes += allocations[i].size;
        size_t k = 0;
        while (k < n_callers && callers[k].caller != allocations[i].caller)
            k++;
        if (k == n_callers && k < sizeof(callers) / sizeof(callers[0])) {
            callers[n_callers].caller = allocations[i].caller;
            callers[n_callers++].bytes = 0;
        }
        if (k < n_callers)
            callers[k].bytes += allocations[i].size;
    }
    int64_t mappings = __atomic_load_n(&mapped, __ATOMIC_RELAXED);
    size_t lost = missing;
    pthread_spin_unlock(&lock);
    FILE *f = fopen(getenv("OUTSTANDING"), "we");
    if (!f)
        abort();
    for (size_t k = 0; k < n_callers; k++) {
        Dl_info info;
        if (dladdr(callers[k].caller, &info))
            fprintf(f, "%tx %zu\n", (const char *)callers[k].caller - (const char *)info.dli_fbase,
                    callers[k].bytes);
    }
    fprintf(f, "total %zu %lld %zu\n", bytes, (long long)mappings, lost);
    if (fclose(f))
        abort();
}

/* Every thread blocks the signal, so none is interrupted while it holds the lock. */
static sigset_t signals(void)
{
    sigset_t s;
    sigemptyset(&s);
    sigaddset(&s, 64);
    return s;
}

static void *answers(void *unused)
{
    (void)unused;
    const sigset_t s = signals();
    for (int which; sigwait(&s, &which) == 0;)
        write_outstanding();
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    const sigset_t s = signals();
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    ready = 1;
    if (pthread_sigmask(SIG_BLOCK, &s, NULL) || pthread_create(&thread, NULL, answers, NULL))
        abort();
}
