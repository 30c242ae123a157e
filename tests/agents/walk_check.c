/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests only the native half of the walker, for processors without a JDK to test with:
 * unwind/test_walker.py builds it for aarch64 and runs it in an emulator. Guarded loads must
 * survive, and a walk out of libc's qsort must reach main. Prints "ok".
 */
#include "unwind/internal.h"
#include "unwind/symbols.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct native_cache_entry cache[NATIVE_CACHE_SIZE];
static struct walker walker = {.native_cache = cache};
static struct walk_frame frames[64];
static unsigned count;
static struct walk_end end;

static void on_signal(int number, siginfo_t *info, void *context)
{
    count = walk_stack(&walker, context, NULL, WALK_WITH_NATIVE, frames, ARRAY_SIZE(frames), &end);
}

__attribute__((noinline)) static int compare(const void *a, const void *b)
{
    if (count == 0)
        raise(SIGUSR1);
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static int sort_numbers(void)
{
    int numbers[40];
    for (int i = 0; i < 40; i++)
        numbers[i] = i * 7 % 40;
    qsort(numbers, 40, sizeof(int), compare);
    return numbers[3];
}

int main(void)
{
    uint64_t word = 0;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    walker.arch = &ARCH_HERE;
    walker.code.layout = &walker.layout;
    if (memory_guard_init() < 0 || sigaction(SIGUSR1, &action, NULL) < 0 || !modules_refresh())
        return 1;
    if (load_u64(&process_memory, 16, &word) || memory_guard_faults() != 1 ||
        !load_u64(&process_memory, (uint64_t)(uintptr_t)&walker.arch, &word) ||
        word != (uint64_t)(uintptr_t)&ARCH_HERE)
        return 2;
    if (sort_numbers() != 3 || end.status == WALK_FAULT)
        return 3;
    static const char *const wanted[] = {"compare", "sort_numbers", "main"};
    unsigned found = 0;
    struct symbols *symbols = symbols_new();
    for (unsigned i = 0; symbols && i < count; i++) {
        struct symbol_place p;
        if (symbols_find(symbols, walk_id_pc(frames[i].id) - 1, &p) < 0)
            return 4;
        printf("%s %s\n", p.library, p.name ? p.name : "?");
        found += found < ARRAY_SIZE(wanted) && p.name && strcmp(p.name, wanted[found]) == 0;
    }
    symbols_free(symbols);
    puts(found == ARRAY_SIZE(wanted) ? "ok" : "not whole");
    return found != ARRAY_SIZE(wanted);
}
