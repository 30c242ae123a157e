/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot/memory.h"

#include "base/backed.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

const struct memory process_memory = {0};

/*
 * bool memory_load_word(uint64_t address, uint64_t *ret): the only instruction that may fault is
 * between the two labels.
 */
#if defined(__x86_64__)
__asm__(".section .text.hot,\"ax\",@progbits\n"
        ".globl memory_load_word\n.hidden memory_load_word\n.type memory_load_word, @function\n"
        "memory_load_word:\n"
        "memory_load_at: movq (%rdi), %rax\n"
        "memory_load_end: movq %rax, (%rsi)\n"
        "  movl $1, %eax\n"
        "  ret\n"
        "memory_load_failed: xorl %eax, %eax\n"
        "  ret\n"
        ".size memory_load_word, . - memory_load_word\n"
        ".text\n");
#define CONTEXT_PC(context) (((ucontext_t *)(context))->uc_mcontext.gregs[REG_RIP])
#elif defined(__aarch64__)
__asm__(".section .text.hot,\"ax\",@progbits\n"
        ".globl memory_load_word\n.hidden memory_load_word\n.type memory_load_word, %function\n"
        "memory_load_word:\n"
        "memory_load_at: ldr x2, [x0]\n"
        "memory_load_end: str x2, [x1]\n"
        "  mov w0, #1\n"
        "  ret\n"
        "memory_load_failed: mov w0, #0\n"
        "  ret\n"
        ".size memory_load_word, . - memory_load_word\n"
        ".text\n");
#define CONTEXT_PC(context) (((ucontext_t *)(context))->uc_mcontext.pc)
#else
#error "the guarded load needs its instruction for this architecture"
#endif

extern const char memory_load_at[] __attribute__((visibility("hidden")));
extern const char memory_load_end[] __attribute__((visibility("hidden")));
extern const char memory_load_failed[] __attribute__((visibility("hidden")));

static const int guarded_signals[] = {SIGSEGV, SIGBUS};
static struct sigaction previous[ARRAY_SIZE(guarded_signals)];
static uint64_t faults;
static int guard_result;

static void pass_on(const struct sigaction *old, int signal_number, siginfo_t *info, void *context)
{
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(signal_number, info, context);
    } else if (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN) {
        /*
         * The kernel kills a process that ignores a fault. With the default action in place, the
         * instruction runs again and has the same effect.
         */
        struct sigaction dfl = {.sa_handler = SIG_DFL};
        sigaction(signal_number, &dfl, NULL);
    } else {
        old->sa_handler(signal_number);
    }
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    uintptr_t pc = (uintptr_t)CONTEXT_PC(context);
    if (pc >= (uintptr_t)memory_load_at && pc < (uintptr_t)memory_load_end) {
        CONTEXT_PC(context) = (uintptr_t)memory_load_failed;
        __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
        return;
    }
    if (signal_number == SIGBUS && info->si_code > 0 && backed_replace(info->si_addr))
        return;
    pass_on(&previous[signal_number == SIGBUS], signal_number, info, context);
}

static void install(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(guarded_signals); i++) {
        /*
         * The signal mask and the alternate stack remain as the VM wants them, because its handler
         * runs within ours.
         */
        struct sigaction action;
        if (sigaction(guarded_signals[i], NULL, &previous[i]) < 0) {
            guard_result = -errno;
            return;
        }
        action = previous[i];
        action.sa_sigaction = on_fault;
        action.sa_flags |= SA_SIGINFO | SA_ONSTACK;
        action.sa_flags &= ~(int)SA_RESETHAND;
        if (sigaction(guarded_signals[i], &action, NULL) < 0) {
            guard_result = -errno;
            return;
        }
    }
}

int memory_guard_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    return guard_result;
}

at_each_sample uint64_t memory_guard_faults(void)
{
    return __atomic_load_n(&faults, __ATOMIC_RELAXED);
}

bool memory_image_load(const struct memory *m, uint64_t address, uint64_t *ret)
{
    uint64_t v;
    if (m->read(m->context, address, &v, sizeof(v)) < 0)
        return false;
    *ret = v;
    return true;
}

at_each_sample bool memory_read(const struct memory *m, uint64_t address, void *bytes, size_t len)
{
    if (m->read)
        return m->read(m->context, address, bytes, len) == 0;
    if (len == 8 && address % 8 == 0)
        return memory_load_word(address, bytes);
    for (size_t done = 0; done < len;) {
        uint64_t word, at = address + done;
        size_t skip = at & 7, n = MIN(len - done, 8 - skip);
        if (!memory_load_word(at - skip, &word))
            return false;
        memcpy((char *)bytes + done, (char *)&word + skip, n);
        done += n;
    }
    return true;
}
