/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot/code.h"
#include "hotspot/layout.h"
#include "hotspot/log_outputs.h"
#include "hotspot/method.h"
#include "hotspot/tables.h"
#include "hotspot/thread_bytes.h"
#include "hotspot/unified_log.h"
#include "tests.h"
#include "unwind/arch.h"
#include "vm_image.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static const int versions[] = {8, 11, 17, 21, 25, 27};

static void layouts_of_all_versions(void **state)
{
    for (unsigned i = 0; i < ARRAY_SIZE(versions); i++) {
        struct image im;
        struct hotspot_layout l;
        char why[200] = "";
        struct hotspot_image image = make_image(&im, versions[i], NULL, NULL, 0);
        int r = hotspot_layout_read(&image, &l, why, sizeof(why));
        if (r < 0)
            fail_msg("JDK %d: %s", versions[i], why);
        assert_int_equal(l.version, versions[i]);
        assert_int_equal(l.unsigned5_base, versions[i] >= 21);
        assert_int_equal(l.interpreter_bcp, versions[i] == 8 ? 7 : 8);
        assert_int_equal(l.anchor_sp, 0);
        assert_int_equal(l.thread_cont_entry != LAYOUT_NONE, versions[i] >= 25);
        free(im.bytes);
    }
}

/*
 * An image that is read in place has the same layout, also the second time. Each read has its own
 * process, because the layout of a process's only libjvm is cached.
 */
static void a_layout_is_the_same_in_place(void **state)
{
    for (unsigned i = 0; i < ARRAY_SIZE(versions); i++) {
        struct image im;
        struct hotspot_layout l = {0}, again[2] = {0};
        char why[200] = "";
        struct hotspot_image image = make_image(&im, versions[i], NULL, NULL, 0);
        assert_int_equal(hotspot_layout_read(&image, &l, why, sizeof(why)), 0);
        image.in_place = true;
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            void *there = mmap((void *)(uintptr_t)BASE, IMAGE_SIZE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (there != (void *)(uintptr_t)BASE)
                _exit(2);
            memcpy(there, im.bytes, IMAGE_SIZE);
            bool same = true;
            for (int k = 0; k < 2; k++)
                same = same && hotspot_layout_read(&image, &again[k], why, sizeof(why)) == 0 &&
                       memcmp(&again[k], &l, sizeof(l)) == 0;
            _exit(!same);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        free(im.bytes);
    }
}

/*
 * A VM whose tables lack or contradict something is refused with the reason, and the result is left
 * unchanged.
 */
static void refused(int version, const char *skip, const char *change, int64_t value,
                    const char *reason)
{
    struct image im;
    struct hotspot_layout l = {.version = -7};
    char why[200] = "";
    struct hotspot_image image = make_image(&im, version, skip, change, value);
    assert_int_equal(hotspot_layout_read(&image, &l, why, sizeof(why)), -ENOTSUP);
    assert_int_equal(l.version, -7);
    if (!strstr(why, reason))
        fail_msg("\"%s\" does not say \"%s\"", why, reason);
    free(im.bytes);
}

static void deviations_are_refused(void **state)
{
    refused(17, "JavaThread _anchor", NULL, 0, "JDK 17 without JavaThread::_anchor");
    refused(25, "CodeBlob _mutable_data", NULL, 0, "CodeBlob::_mutable_data");
    refused(8, "size PcDesc", NULL, 0, "PcDesc");
    refused(21, "_misc_has_linenumber", NULL, 0, "linenumber");
    refused(11, NULL, "JavaThread _anchor", 5000, "JavaThread::_anchor at 5000");
    refused(11, NULL, "JavaThread _anchor", -8, "at -8");
    refused(27, NULL, "PcDesc _scope", 8, "another PcDesc");
    refused(17, NULL, "Method _constMethod", 12, "not aligned");
    refused(17, "_vm_major_version", NULL, 0, "version");
    refused(25, "_deopt_handler_offset", NULL, 0, "deoptimization");
}

static void other_vms_are_refused(void **state)
{
    struct image im;
    struct hotspot_layout l;
    char why[200];
    struct hotspot_image image = make_image(&im, 17, NULL, NULL, 0);
    im.tables[0] = 0;
    assert_int_equal(hotspot_layout_read(&image, &l, why, sizeof(why)), -ENOTSUP);
    assert_string_equal(why, "this VM exports no structures");
    free(im.bytes);
    /* Invalid tables: entries of size 0, and an address outside the image. */
    image = make_image(&im, 17, NULL, NULL, 0);
    im.numbers[STRIDE / 8] = put_u64(&im, 0);
    assert_int_equal(hotspot_layout_read(&image, &l, why, sizeof(why)), -ENOTSUP);
    im.numbers[STRIDE / 8] = put_u64(&im, STRIDE);
    im.tables[1] = put_u64(&im, 42);
    assert_int_equal(hotspot_layout_read(&image, &l, why, sizeof(why)), -ENOTSUP);
    free(im.bytes);
}

/* ---- code ---- */

static void code_is_found(void **state)
{
    struct code_image c;
    struct code_blob b;
    make_code(&c, (uint8_t[]){0}, 1);
    assert_true(code_find(&c.cache, &c.memory, c.code + 5, &b));
    assert_int_equal(b.kind, CODE_COMPILED);
    assert_int_equal(b.begin, c.code);
    assert_int_equal(b.end, c.code + 200);
    assert_int_equal(b.frame_bytes, 48);
    assert_int_equal(b.frame_offset, 12);
    assert_false(code_find(&c.cache, &c.memory, c.blob + 1024, &b)); /* a free segment */
    assert_false(code_find(&c.cache, &c.memory, c.cache.high, &b));
    c.im.bytes[c.cache.low - BASE + (unsigned)c.layout.block_used] = 0;
    assert_false(code_find(&c.cache, &c.memory, c.code + 5, &b)); /* a free block */
    free(c.im.bytes);
}

static void inlined_methods_are_reported(void **state)
{
    /*
     * At 1: no sender, method 1, bci 7 (encoded plus one). At 8: sender at 1, method 2, bci 300 as
     * UNSIGNED5: 301 = 237 + 64.
     */
    const uint8_t scopes[] = {0, 0, 1, 8, 0, 0, 0, 0, 1, 2, 237, 1};
    struct code_image c;
    struct code_blob b;
    struct code_scopes s;
    struct code_scope scope;
    make_code(&c, scopes, sizeof(scopes));
    assert_true(code_find(&c.cache, &c.memory, c.code, &b));
    assert_true(code_scopes_at(&s, &c.cache, &c.memory, &b, c.code + 20));
    assert_true(code_scopes_next(&s, &scope));
    assert_int_equal(scope.method, 0x5000);
    assert_int_equal(scope.bci, 7);
    assert_false(scope.inlined);
    assert_false(code_scopes_next(&s, &scope));
    /* An address between two descriptors belongs to the second one. */
    assert_true(code_scopes_at(&s, &c.cache, &c.memory, &b, c.code + 21));
    assert_true(code_scopes_next(&s, &scope));
    assert_int_equal(scope.method, 0x6000);
    assert_int_equal(scope.bci, 300);
    assert_true(scope.inlined);
    assert_true(code_scopes_next(&s, &scope));
    assert_int_equal(scope.method, 0x5000);
    assert_false(code_scopes_next(&s, &scope));
    /* After the last descriptor only the method itself is known. */
    assert_true(code_scopes_at(&s, &c.cache, &c.memory, &b, c.code + 61));
    assert_true(code_scopes_next(&s, &scope));
    assert_int_equal(scope.method, 0x5000);
    assert_int_equal(scope.bci, 0);
    assert_false(code_scopes_next(&s, &scope));
    free(c.im.bytes);
}

static void a_loop_of_scopes_ends(void **state)
{
    /* The second scope names itself as its caller. */
    const uint8_t scopes[] = {0, 0, 1, 8, 0, 0, 0, 0, 8, 2, 5};
    struct code_image c;
    struct code_blob b;
    struct code_scopes s;
    struct code_scope scope;
    make_code(&c, scopes, sizeof(scopes));
    assert_true(code_find(&c.cache, &c.memory, c.code, &b));
    assert_true(code_scopes_at(&s, &c.cache, &c.memory, &b, c.code + 50));
    assert_false(code_scopes_next(&s, &scope));
    free(c.im.bytes);
}

/* ---- frames ---- */

struct bytes {
    const uint8_t *data;
    size_t len;
};

static int bytes_read(void *context, uint64_t address, void *bytes, size_t len)
{
    const struct bytes *b = context;
    if (address < BASE || address - BASE + len > b->len)
        return -EFAULT;
    memcpy(bytes, b->data + (address - BASE), len);
    return 0;
}

/*
 * Returns the frame state before each instruction of a method; the code is padded so that windows
 * fit.
 */
static enum frame_state state_at(const struct arch *arch, const uint8_t *code, size_t len,
                                 unsigned at, unsigned complete, int frame)
{
    uint8_t padded[512] = {0};
    memcpy(padded + 64, code, len);
    struct bytes b = {padded, sizeof(padded)};
    struct memory m = {&b, bytes_read};
    uint64_t entry = BASE + 64;
    return arch->compiled_state(&m, entry + at, entry, entry + complete, entry + 256, frame);
}

static void prologues_and_epilogues_of_x86_64(void **state)
{
    /*
     * mov [rsp-0x14000], eax; push rbp; sub rsp, 0x20; ...; add rsp, 0x20; pop rbp; cmp rsp,
     * [r15+0x340]; ja; ret
     */
    static const uint8_t c1[] = {0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48,
                                 0x83, 0xec, 0x20, 0x90, 0x90, 0x90, 0x90, 0x48, 0x83,
                                 0xc4, 0x20, 0x5d, 0x49, 0x3b, 0xa7, 0x40, 0x03, 0x00,
                                 0x00, 0x0f, 0x87, 1,    2,    3,    4,    0xc3};

    static const struct {
        unsigned at;
        enum frame_state state;
    } expected[] = {{0, FRAME_NONE},  {7, FRAME_NONE},  {8, FRAME_FP_PUSHED},  {12, FRAME_FULL},
                    {14, FRAME_FULL}, {16, FRAME_FULL}, {20, FRAME_FP_PUSHED}, {21, FRAME_NONE},
                    {28, FRAME_NONE}, {34, FRAME_NONE}};

    for (unsigned i = 0; i < ARRAY_SIZE(expected); i++)
        assert_int_equal(state_at(&arch_x86_64, c1, sizeof(c1), expected[i].at, 12, 48),
                         expected[i].state);
    /* sub rsp, 0x18; mov [rsp+0x10], rbp; ...; add rsp, 0x10; pop rbp; test [rip], eax; ret */
    static const uint8_t c2[] = {0x48, 0x81, 0xec, 0x18, 0,    0,    0,    0x48, 0x89, 0x6c,
                                 0x24, 0x10, 0x90, 0x90, 0x90, 0x90, 0x48, 0x83, 0xc4, 0x10,
                                 0x5d, 0x85, 0x05, 1,    2,    3,    4,    0xc3};
    assert_int_equal(state_at(&arch_x86_64, c2, sizeof(c2), 0, 12, 32), FRAME_NONE);
    assert_int_equal(state_at(&arch_x86_64, c2, sizeof(c2), 7, 12, 32), FRAME_FP_LIVE);
    assert_int_equal(state_at(&arch_x86_64, c2, sizeof(c2), 12, 12, 32), FRAME_FULL);
    assert_int_equal(state_at(&arch_x86_64, c2, sizeof(c2), 20, 12, 32), FRAME_FP_PUSHED);
    assert_int_equal(state_at(&arch_x86_64, c2, sizeof(c2), 21, 12, 32), FRAME_NONE);
    assert_int_equal(state_at(&arch_x86_64, c2, sizeof(c2), 27, 12, 32), FRAME_NONE);
    /*
     * A pop of rbp that does not follow the removal of this frame does not belong to an epilogue.
     */
    assert_int_equal(state_at(&arch_x86_64, c2, sizeof(c2), 20, 12, 64), FRAME_FULL);
}

static void frames_of_aarch64(void **state)
{
    /*
     * sub sp, sp, #32; stp x29, x30, [sp, #16]; nop x8; ldp x29, x30, [sp, #16]; add sp, sp, #32;
     * cmp; b.hi; ret
     */
    static const uint32_t words[] = {0xd10083ff, 0xa9017bfd, 0xd503201f, 0xd503201f, 0xd503201f,
                                     0xd503201f, 0xd503201f, 0xd503201f, 0xd503201f, 0xd503201f,
                                     0xa9417bfd, 0x910083ff, 0xf9400388, 0xd65f03c0};
    const uint8_t *code = (const uint8_t *)words;

    static const struct {
        unsigned at;
        enum frame_state state;
    } expected[] = {{0, FRAME_NONE},  {4, FRAME_FP_LIVE}, {8, FRAME_FULL}, {24, FRAME_FULL},
                    {40, FRAME_FULL}, {48, FRAME_NONE},   {52, FRAME_NONE}};

    for (unsigned i = 0; i < ARRAY_SIZE(expected); i++)
        assert_int_equal(state_at(&arch_aarch64, code, sizeof(words), expected[i].at, 8, 32),
                         expected[i].state);
    /* stp x29, x30, [sp, #-16]!; sub sp, sp, #48 */
    static const uint32_t pushes[] = {0xa9bf7bfd, 0xd100c3ff, 0xd503201f, 0xd503201f};
    code = (const uint8_t *)pushes;
    assert_int_equal(state_at(&arch_aarch64, code, sizeof(pushes), 0, 8, 64), FRAME_NONE);
    assert_int_equal(state_at(&arch_aarch64, code, sizeof(pushes), 4, 8, 64), FRAME_FP_PUSHED);
    assert_int_equal(state_at(&arch_aarch64, code, sizeof(pushes), 8, 8, 64), FRAME_FULL);
}

/*
 * Code of the interpreter of aarch64: where an entry sets the frame pointer, where the bytecode
 * pointer is kept, and what the return sequence says.
 */
static void interpreter_of_aarch64(void **state)
{
    /*
     * stp x8, x22, [sp, #-96]!; stp x29, x30, [sp, #80]; add x29, sp, #80; stp xzr, x13, [sp, #64];
     * stur x22, [x29, #-72]; mov sp, x29; ldp x29, x30, [sp], #16; and sp, x20, #-16; ret
     */
    static const uint32_t words[] = {0xd503201f, 0xd503201f, 0xd503201f, 0xa9ba5be8,
                                     0xa9057bfd, 0x910143fd, 0xa90437ff, 0xf81b83b6,
                                     0x910003bf, 0xa8c17bfd, 0x927cee9f, 0xd65f03c0,
                                     0xd503201f, 0xd503201f, 0xd503201f, 0xd503201f};
    struct bytes b = {(const uint8_t *)words, sizeof(words)};
    struct memory m = {&b, bytes_read};
    uint64_t end = BASE + sizeof(words), frame = BASE + 20, pc, sp;
    assert_int_equal(arch_aarch64.interpreter_bcp(&m, BASE, end), 9);
    assert_int_equal(arch_aarch64.interpreter_bcp(&m, BASE + 32, end), 0);
    assert_int_equal(arch_aarch64.interpreter_frame(&m, BASE, end), frame);
    assert_int_equal(arch_aarch64.interpreter_frame(&m, BASE + 24, end), 0);
    assert_int_equal(arch_aarch64.entry_state(frame - 4, frame), FRAME_NONE);
    assert_int_equal(arch_aarch64.entry_state(frame, frame), FRAME_NONE);
    assert_int_equal(arch_aarch64.entry_state(frame + 4, frame), FRAME_FP_LIVE);
    assert_int_equal(arch_aarch64.entry_state(frame + 8, frame), FRAME_FULL);

    /* Only where the frame is gone: at the adjustment of the stack pointer and at the return. */
    struct registers r = {.sp = 0x1000, .link = 0x7777, .popped_sp = 0x1030};
    for (unsigned at = 16; at <= 48; at += 4) {
        r.pc = BASE + at;
        bool gone = at == 40 || at == 44;
        assert_int_equal(arch_aarch64.interpreter_return(&m, &r, &pc, &sp), gone);
        if (gone) {
            assert_int_equal(pc, 0x7777);
            assert_int_equal(sp, 0x1030);
        }
    }
}

static void adapters_and_linkage_of_aarch64(void **state)
{
    /*
     * mov x13, sp; sub sp, sp, #32; str x0, [sp]; ret; str x0, [sp]; adrp x16, 0; ldr x17, [x16];
     * add x16, x16, #0; br x17; then br x17 alone
     */
    static const uint32_t words[] = {0xd503201f, 0x910003ed, 0xd10083ff, 0xf90003e0, 0xd65f03c0,
                                     0xf90003e0, 0x90000010, 0xf9400211, 0x91000210, 0xd61f0220,
                                     0xd503201f, 0xd503201f, 0xd61f0220, 0xd503201f, 0xd503201f};
    static const unsigned linkage[] = {24, 28, 32, 36};
    struct bytes b = {(const uint8_t *)words, sizeof(words)};
    struct memory m = {&b, bytes_read};
    assert_false(arch_aarch64.notes_sender_sp(&m, BASE + 4, BASE));
    assert_true(arch_aarch64.notes_sender_sp(&m, BASE + 8, BASE));
    assert_true(arch_aarch64.notes_sender_sp(&m, BASE + 16, BASE));
    assert_false(arch_aarch64.notes_sender_sp(&m, BASE + 16, BASE + 8));
    assert_false(arch_aarch64.notes_sender_sp(&m, BASE + 24, BASE));
    for (unsigned i = 0; i < ARRAY_SIZE(linkage); i++)
        assert_true(arch_aarch64.linkage_entry(&m, BASE + linkage[i]));
    assert_false(arch_aarch64.linkage_entry(&m, BASE + 16));
    assert_false(arch_aarch64.linkage_entry(&m, BASE + 40));
}

static bool call_before(const uint8_t *code, size_t len)
{
    uint8_t padded[64] = {0};
    memcpy(padded + 16, code, len);
    struct bytes b = {padded, sizeof(padded)};
    struct memory m = {&b, bytes_read};
    return arch_x86_64.follows_call(&m, BASE + 16 + len);
}

static void calls_are_known(void **state)
{
    assert_true(call_before((uint8_t[]){0xe8, 1, 2, 3, 4}, 5));
    assert_true(call_before((uint8_t[]){0xff, 0xd0}, 2));
    assert_true(call_before((uint8_t[]){0x41, 0xff, 0xd2}, 3));
    assert_true(call_before((uint8_t[]){0xff, 0x53, 0x40}, 3));
    assert_true(call_before((uint8_t[]){0xff, 0x14, 0xd8}, 3));
    assert_true(call_before((uint8_t[]){0xff, 0x93, 1, 2, 0, 0}, 6));
    assert_false(call_before((uint8_t[]){0x90, 0x90, 0x90, 0x90, 0x90}, 5));
    assert_false(call_before((uint8_t[]){0xff, 0xe0}, 2));
}

/* ---- guarded loads ---- */

static volatile sig_atomic_t passed_on;

static void previous_handler(int signal_number, siginfo_t *info, void *context)
{
    passed_on++;
    _exit(passed_on == 1 && info->si_addr == (void *)0x18 ? 33 : 34);
}

static void faults_are_survived(void **state)
{
    uint64_t v = 42, there[2] = {0x1122334455667788, 0x99};
    uint32_t half = 7;
    uint8_t byte = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* The previous handler gets the faults that are not ours, with all information. */
        struct sigaction action = {.sa_sigaction = previous_handler, .sa_flags = SA_SIGINFO};
        sigaction(SIGSEGV, &action, NULL);
        if (memory_guard_init() < 0 || memory_load_word(8, &v) || memory_guard_faults() != 1)
            _exit(1);
        volatile uintptr_t nowhere = 0x18;
        *(volatile int *)nowhere = 1;
        _exit(2);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 33);

    assert_int_equal(memory_guard_init(), 0);
    void *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    mprotect((char *)page + 4096, 4096, PROT_NONE);
    uint64_t end = (uint64_t)(uintptr_t)page + 4096, before = memory_guard_faults();
    assert_true(load_u64(&process_memory, (uint64_t)(uintptr_t)there, &v));
    assert_int_equal(v, there[0]);
    assert_true(load_u32(&process_memory, (uint64_t)(uintptr_t)there + 4, &half));
    assert_int_equal(half, 0x11223344);
    assert_true(load_u8(&process_memory, (uint64_t)(uintptr_t)there + 1, &byte));
    assert_int_equal(byte, 0x77);
    assert_false(load_u64(&process_memory, end, &v));
    /* Only half of it is mapped. */
    assert_false(load_u64(&process_memory, end - 4, &v));
    /* not a valid address */
    assert_false(load_u64(&process_memory, UINT64_C(0x8000000000000000), &v));
    assert_true(load_u32(&process_memory, end - 4, &half));
    assert_int_equal(v, there[0]);
    assert_int_equal(memory_guard_faults(), before + 3);
    munmap(page, 8192);
}

/* ---- lines of the VM's log ---- */

static struct log_text text_of(const char *s)
{
    return (struct log_text){s, strlen(s)};
}

static void assert_text(struct log_text t, const char *expected)
{
    if (!log_text_is(t, expected))
        fail_msg("\"%.*s\" is not \"%s\"", (int)t.len, t.data, expected);
}

static void lines_of_the_log(void **state)
{
    static const char text[] =
        "[13144904443820ns][14589][gc,start ] GC(0) Pause Full (System.gc())";
    struct log_line line;
    assert_true(log_line_read(text, strlen(text), &line));
    assert_int_equal(line.ns, 13144904443820);
    assert_int_equal(line.tid, 14589);
    assert_text(line.tags, "gc,start");
    assert_text(line.text, "GC(0) Pause Full (System.gc())");
    /* A line that is cut off anywhere is read or refused, but never read beyond its end. */
    for (size_t n = 0; n < strlen(text); n++) {
        char *part = strndup(text, n);
        struct log_gc g;
        if (log_line_read(part, n, &line))
            (void)log_gc_read(line.text, &g);
        free(part);
    }
    assert_false(log_line_read("[12s][gc] x", 11, &line));
    /* Thread numbers begin again at 300 when they have reached the limit. */
    static const char padded[] = "[9904443820ns ][395  ][gc       ] GC(1) Pause Young (Normal) 1ms";
    assert_true(log_line_read(padded, strlen(padded), &line));
    assert_int_equal(line.ns, 9904443820);
    assert_int_equal(line.tid, 395);
    assert_text(line.tags, "gc");
    assert_text(line.text, "GC(1) Pause Young (Normal) 1ms");
}

static void outputs_of_the_log(void **state)
{
    static const struct {
        const char *line, *name, *decorators;
        enum log_level level; /* of the tag jvmti */
        bool named;
    } known[] = {
        {" #0: stdout all=warning uptime,level,tags", "stdout", "uptime,level,tags", LOG_WARNING},
        {" #1: stderr all=off none foldmultilines=false", "stderr", "none", LOG_OFF},
        {"#12: file=/a b/c: d.log all=error,gc*=info,jvmti*=debug,jvmti+thread=off time "
         "(reconfigured)",
         "file=/a b/c: d.log", "time", LOG_DEBUG, true},
        {" #2: file=x all=info,jvmti=off uptime", "file=x", "uptime", LOG_OFF, true},
    };

    static const char *const others[] = {
        "",
        "Log output configuration:",
        " #0:",
        "#: stdout all=off none",
        " #0: stdout",
        " #x: stdout all=off none",
        " #0: all=off none",
        "#0: stdout all=off",
    };
    struct log_output o;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        bool named;
        assert_true(log_output_read(text_of(known[i].line), &o));
        assert_text(o.name, known[i].name);
        assert_text(o.decorators, known[i].decorators);
        assert_int_equal(log_output_level(&o, "jvmti", &named), known[i].level);
        assert_int_equal(named, known[i].named);
        /* A line that ends anywhere is read or refused, never beyond its end. */
        for (size_t n = 0; n < strlen(known[i].line); n++) {
            char *part = strndup(known[i].line, n);
            if (log_output_read((struct log_text){part, n}, &o))
                (void)log_output_level(&o, "jvmti", &named);
            free(part);
        }
    }
    assert_true(log_output_read(text_of(known[2].line), &o));
    assert_int_equal(o.number, 12);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (log_output_read(text_of(others[i]), &o))
            fail_msg("\"%s\" is no output", others[i]);
    assert_string_equal(log_level_word(LOG_WARNING), "warning");
}

static void safepoints_of_the_log(void **state)
{
    struct log_safepoint s;
    assert_true(log_safepoint_read(
        text_of("Safepoint \"G1CollectForAllocation\", Time since last: 41617903 ns, Reaching "
                "safepoint: 95141 ns, Cleanup: 4677 ns, At safepoint: 8832518 ns, Total: 8932336 "
                "ns"),
        &s));
    assert_text(s.operation, "G1CollectForAllocation");
    assert_int_equal(s.sync_ns, 95141);
    assert_int_equal(s.cleanup_ns, 4677);
    assert_int_equal(s.at_ns, 8832518);
    assert_int_equal(s.leaving_ns, 0);
    assert_int_equal(s.total_ns, 8932336);
    assert_int_equal(s.threads, -1);
    assert_true(log_safepoint_read(
        text_of("Safepoint \"G1CollectFull\", Time since last: 354239354 ns, Reaching safepoint: "
                "4697 ns, At safepoint: 25481954 ns, Leaving safepoint: 9564 ns, Total: 25496215 "
                "ns, Threads: 0 runnable, 10 total"),
        &s));
    assert_int_equal(s.leaving_ns, 9564);
    assert_int_equal(s.threads, 10);
    assert_false(log_safepoint_read(text_of("Safepoint \"x\", Reaching safepoint: 12"), &s));
    assert_false(log_safepoint_read(text_of("Safepoint \"x"), &s));

    struct log_text operation;
    uint64_t total, sync;
    assert_true(
        log_safepoint_begin_read(text_of("Entering safepoint region: RevokeBias"), &operation));
    assert_text(operation, "RevokeBias");
    assert_true(log_stopped_read(text_of("Total time for which application threads were stopped: "
                                         "0.0115465 seconds, Stopping threads took: 0.0000625 "
                                         "seconds"),
                                 &total, &sync));
    assert_int_equal(total, 11546500);
    assert_int_equal(sync, 62500);
    assert_false(log_stopped_read(text_of("Application time: 0.1 seconds"), &total, &sync));
}

static void collections_of_the_log(void **state)
{
    static const struct {
        const char *line, *name, *cause;
        uint64_t before, after, capacity, duration;
        bool heap, ended;
    } rows[] = {
        {"GC(0) Pause Young (Normal) (G1 Evacuation Pause) 15M->14M(200M) 9.366ms",
         "Pause Young (Normal)", "G1 Evacuation Pause", 15 << 20, 14 << 20, 200 << 20, 9366000,
         true, true},
        {"GC(7) Pause Full (System.gc()) 5M->1M(14M) 11.152ms", "Pause Full", "System.gc()",
         5 << 20, 1 << 20, 14 << 20, 11152000, true, true},
        {"GC(7) Pause Full (System.gc())", "Pause Full", "System.gc()", 0, 0, 0, 0, false, false},
        {"GC(3) Garbage Collection (Allocation Rate) 44M(22%)->52M(26%)", "Garbage Collection",
         "Allocation Rate", 44 << 20, 52 << 20, 0, 0, true, false},
        {"GC(3) Major Collection (Warmup) 64M(32%)->28M(14%) 0.029s", "Major Collection", "Warmup",
         64 << 20, 28 << 20, 0, 29000000, true, true},
        {"GC(3) Y: Pause Mark Start (Major) 0.012ms", "Pause Mark Start (Major)", "", 0, 0, 0,
         12000, false, true},
        {"GC(4) Pause Init Mark (unload classes) 0.010ms", "Pause Init Mark (unload classes)", "",
         0, 0, 0, 10000, false, true},
        {"GC(4) Concurrent cleanup 65M->35M(200M) 0.027ms", "Concurrent cleanup", "", 65 << 20,
         35 << 20, 200 << 20, 27000, true, true},
        {"GC(0)   Evacuate Collection Set: 8.93ms", "Evacuate Collection Set", "", 0, 0, 0, 8930000,
         false, true},
        {"GC(2) Concurrent Mark Cycle", "Concurrent Mark Cycle", "", 0, 0, 0, 0, false, false},
        {"GC(2) Pause Young (Allocation Failure) 512K->1G(2G) 1.5ms", "Pause Young",
         "Allocation Failure", 512 << 10, 1 << 30, UINT64_C(2) << 30, 1500000, true, true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct log_gc g;
        assert_true(log_gc_read(text_of(rows[i].line), &g));
        assert_text(g.name, rows[i].name);
        assert_text(g.cause, rows[i].cause);
        assert_int_equal(g.has_heap, rows[i].heap);
        assert_int_equal(g.has_duration, rows[i].ended);
        assert_int_equal(g.before, rows[i].before);
        assert_int_equal(g.after, rows[i].after);
        assert_int_equal(g.capacity, rows[i].capacity);
        assert_int_equal(g.duration_ns, rows[i].duration);
    }
    struct log_gc g;
    assert_false(log_gc_read(text_of("Using G1"), &g));
    assert_false(log_gc_read(text_of("GC(x) Pause"), &g));
    assert_false(log_gc_read(text_of("GC(1) "), &g));
}

static void compilers_of_the_log(void **state)
{
    struct log_compile c;
    assert_true(log_compile_read(text_of("   11 %     4       Deopt::run @ 4 (25 bytes)   made not "
                                         "entrant: uncommon trap"),
                                 &c));
    assert_int_equal(c.id, 11);
    assert_int_equal(c.level, 4);
    assert_true(c.osr && c.not_entrant);
    assert_text(c.method, "Deopt::run");
    assert_text(c.why, "uncommon trap");
    assert_int_equal(c.bytes, 25);
    assert_true(log_compile_read(text_of("  579       1       a.b.C::getState (5 bytes)"), &c));
    assert_int_equal(c.id, 579);
    assert_int_equal(c.level, 1);
    assert_false(c.osr || c.native || c.not_entrant);
    assert_true(log_compile_read(text_of("    1     n 0       a.B::f (native)   (static)"), &c));
    assert_true(c.native);
    assert_false(log_compile_read(text_of("no number"), &c));

    struct log_trap t;
    assert_true(log_trap_read(text_of("cid=  10 osr level=4 Deopt.run(LDeopt$S;I)I trap_bci=4 "
                                      "osr_bci=4 profile_predicate maybe_recompile "
                                      "pc=0x00007f95a82c7bc8 relative_pc=0x00000000000000a8"),
                              &t));
    assert_int_equal(t.compile_id, 10);
    assert_int_equal(t.level, 4);
    assert_int_equal(t.bci, 4);
    assert_text(t.method, "Deopt.run(LDeopt$S;I)I");
    assert_text(t.reason, "profile_predicate");
    assert_text(t.action, "maybe_recompile");
    assert_false(log_trap_read(text_of("cid="), &t));
}

/* A thread that continues while it is read: before its nth load it may get another buffer. */
enum { ALLOCATED, START, TOP, END, WORDS, BUFFER = 4096, FAR = 1 << 30 };

struct busy_thread {
    uint64_t words[WORDS], truth;
    uint64_t refills; /* a bit for each load */
    int loads;
};

static void refill(struct busy_thread *t)
{
    t->words[ALLOCATED] += t->words[TOP] - t->words[START];
    t->words[START] = t->words[START] > FAR ? FAR / 2 : FAR * UINT64_C(2); /* far away */
    t->words[TOP] = t->words[START] + BUFFER / 2;
    t->words[END] = t->words[START] + BUFFER;
    t->truth += BUFFER / 2;
}

static int read_busy(void *context, uint64_t address, void *bytes, size_t len)
{
    struct busy_thread *t = context;
    if (t->refills >> t->loads++ % 64 & 1)
        refill(t);
    if (address + len > sizeof(t->words))
        return -EFAULT;
    memcpy(bytes, (const char *)t->words + address, len);
    return 0;
}

static void bytes_of_a_thread_that_goes_on(void **state)
{
    static const struct thread_bytes_at at = {ALLOCATED * 8, START * 8, TOP * 8, END * 8};
    for (uint64_t i = 0; i < 1 << 16; i++) {
        struct busy_thread t = {{0, FAR, FAR + 100, FAR + BUFFER}, 100, i, 0};
        struct memory m = {&t, read_busy};
        uint64_t before = t.truth, bytes = thread_bytes(&m, 0, &at);
        /* the last buffer of what is allocated during the call may be missing */
        if (bytes + BUFFER < before || bytes > t.truth)
            fail_msg("refills %#llx: %llu of %llu to %llu", (unsigned long long)i,
                     (unsigned long long)bytes, (unsigned long long)before,
                     (unsigned long long)t.truth);
    }
    struct busy_thread t = {{5, FAR, FAR + 100, FAR + BUFFER}, 105, UINT64_MAX, 0};
    assert_true(thread_bytes(&(struct memory){&t, read_busy}, 0, &at) <= t.truth);
    assert_int_equal(thread_bytes(&(struct memory){&t, read_busy}, 1 << 20, &at), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_of_all_versions),
        cmocka_unit_test(a_layout_is_the_same_in_place),
        cmocka_unit_test(deviations_are_refused),
        cmocka_unit_test(other_vms_are_refused),
        cmocka_unit_test(code_is_found),
        cmocka_unit_test(inlined_methods_are_reported),
        cmocka_unit_test(a_loop_of_scopes_ends),
        cmocka_unit_test(prologues_and_epilogues_of_x86_64),
        cmocka_unit_test(frames_of_aarch64),
        cmocka_unit_test(interpreter_of_aarch64),
        cmocka_unit_test(adapters_and_linkage_of_aarch64),
        cmocka_unit_test(calls_are_known),
        cmocka_unit_test(faults_are_survived),
        cmocka_unit_test(bytes_of_a_thread_that_goes_on),
        cmocka_unit_test(lines_of_the_log),
        cmocka_unit_test(outputs_of_the_log),
        cmocka_unit_test(safepoints_of_the_log),
        cmocka_unit_test(collections_of_the_log),
        cmocka_unit_test(compilers_of_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
