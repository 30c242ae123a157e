/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal handler must not ask the loader for the address of a thread-local variable, because the
 * first use in a thread allocates it. The variable is found without that, in one of two ways:
 * either it is at the same distance from the thread pointer in all threads (static TLS), or the
 * thread's vector of blocks (DTV) has an entry for the library, which is empty as long as the
 * thread has not used it (U. Drepper, "ELF Handling For Thread-Local Storage", section 3). A second
 * thread is used to find out which of the two applies, and to check that the vector looks as
 * expected.
 */
#include "agent/sampler/trace_context.h"

#include "agent/vm/libraries.h"
#include "base/macro.h"
#include "hotspot/memory.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define VARIABLE "otel_thread_ctx_v1"

enum { NOT_FOUND, AT_DISTANCE, IN_BLOCK };

/* The distance from the thread pointer to the address of the vector. */
#if defined(__x86_64__)
enum { DTV_AT_GLIBC = 8, DTV_AT_MUSL = 8 };
#else
enum { DTV_AT_GLIBC = 0, DTV_AT_MUSL = -8 };
#endif

static struct {
    _Atomic int kind;
    ptrdiff_t offset; /* from the thread pointer, or in the library's block */
    size_t module;    /* the library's index in the vector */
    bool glibc;
    void *library;
    unsigned long long loaded; /* number of libraries that had been loaded at the last search */
} place;

/*
 * Returns the thread's block of a library, or 0 when it has none. The loads are guarded, because
 * another C library may keep the vector elsewhere.
 */
static uintptr_t block_of(const char *thread, size_t module)
{
    /* glibc has pairs, and the one before the first says how many there are; musl has words. */
    uint64_t dtv, n, block, words = place.glibc ? 2 : 1, length_at = place.glibc ? -2ULL : 0;
    const char *vector = thread + (place.glibc ? DTV_AT_GLIBC : DTV_AT_MUSL);
    bool has = load_u64(&process_memory, (uintptr_t)vector, &dtv) &&
               load_u64(&process_memory, dtv + length_at * sizeof(dtv), &n) && module <= n &&
               load_u64(&process_memory, dtv + module * words * sizeof(dtv), &block);
    return has && block != UINTPTR_MAX ? block : 0; /* -1: not allocated yet */
}

/* ---- finding it ---- */

static int find_pointer(void *library, const char *path, void *unused)
{
    if (!dlsym(library, VARIABLE))
        return 0;
    place.library = dlopen(*path ? path : NULL, RTLD_LAZY | RTLD_NOLOAD); /* to keep it */
    return 1;
}

/*
 * Finds the library that has the variable; the library that was found by name may only depend on
 * it.
 */
static int find_owner(struct dl_phdr_info *info, size_t size, void *context)
{
    uintptr_t address = (uintptr_t)context, block = (uintptr_t)info->dlpi_tls_data;
    for (int i = 0; block && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_TLS || address < block || address - block >= p->p_memsz)
            continue;
        place.module = info->dlpi_tls_modid;
        place.offset = (ptrdiff_t)(address - block);
        return 1;
    }
    return 0;
}

struct view {
    const char *thread; /* the thread pointer */
    uintptr_t address, block;
};

static void *view_here(void *context)
{
    struct view *v = context;
    v->thread = __builtin_thread_pointer();
    v->address = (uintptr_t)dlsym(place.library, VARIABLE);
    v->block = block_of(v->thread, place.module);
    return NULL;
}

static int kind_of(const struct view *a, const struct view *b)
{
    if (a->address - (uintptr_t)a->thread == b->address - (uintptr_t)b->thread)
        return AT_DISTANCE;
    uintptr_t offset = (uintptr_t)place.offset;
    return a->block + offset == a->address && b->block + offset == b->address ? IN_BLOCK
                                                                              : NOT_FOUND;
}

void trace_context_find(void)
{
    unsigned long long loaded = place.library ? 0 : libraries_loaded();
    if (place.library || (loaded && loaded == place.loaded))
        return;
    place.loaded = loaded;
    (void)libraries_visit(find_pointer, NULL);
    if (!place.library)
        return;
    struct view mine, other;
    pthread_t second;
    place.glibc = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
    void *address = dlsym(place.library, VARIABLE);
    int kind = NOT_FOUND;
    if (dl_iterate_phdr(find_owner, address) && memory_guard_init() == 0 &&
        pthread_create(&second, NULL, view_here, &other) == 0) {
        pthread_join(second, NULL);
        view_here(&mine);
        kind = kind_of(&mine, &other);
        if (kind == AT_DISTANCE)
            place.offset = (const char *)mine.address - mine.thread;
    }
    atomic_store_explicit(&place.kind, kind, memory_order_release);
}

void trace_context_release(void)
{
    atomic_store(&place.kind, NOT_FOUND);
    if (place.library)
        dlclose(place.library);
    place.library = NULL;
    place.loaded = 0;
}

/* ---- in a signal handler ---- */

void trace_context_read(struct trace_context *ret)
{
    struct {
        uint8_t trace[TRACE_ID_BYTES], span[SPAN_ID_BYTES], valid;
    } record;

    static const uint8_t none[TRACE_ID_BYTES];
    int kind = atomic_load_explicit(&place.kind, memory_order_acquire);
    *ret = (struct trace_context){.known = kind != NOT_FOUND};
    if (likely(kind == NOT_FOUND))
        return;
    const char *thread = __builtin_thread_pointer();
    uintptr_t from = kind == AT_DISTANCE ? (uintptr_t)thread : block_of(thread, place.module);
    uint64_t at = 0;
    if (!from || !load_u64(&process_memory, from + (uintptr_t)place.offset, &at) || !at ||
        !memory_read(&process_memory, at, &record, sizeof(record)) || record.valid != 1 ||
        memcmp(record.trace, none, sizeof(none)) == 0)
        return;
    ret->present = true;
    memcpy(ret->trace, record.trace, sizeof(ret->trace));
    memcpy(ret->span, record.span, sizeof(ret->span));
}
