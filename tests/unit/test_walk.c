/* SPDX-License-Identifier: Apache-2.0 */
/* Walks synthetic stacks, for both processors, without a VM. */
#include "hotspot/method.h"
#include "tests.h"
#include "unwind/internal.h"
#include "unwind/snapshot.h"
#include "vm_image.h"

#include <sys/mman.h>

enum { STACK_BYTES = 4096, FRAMES = 32 };

/*
 * JDK 17: a compiled method (with another inlined into it), called by an interpreted method, called
 * by the VM's call stub. The stack is in the image. The members are the addresses that tests need:
 */
struct scene {
    struct code_image code;
    struct walker walker;
    struct walk walk;
    struct walk_frame frames[FRAMES];
    struct walk_end end;
    struct notes notes;
    uint64_t interpreted; /* Method of the interpreted frame */
    uint64_t stack, sp;   /* the lowest address, and the compiled frame's stack pointer */
    uint64_t return_slot; /* of the compiled frame */
};

/* Makes a Method and the structures it refers to; its bytecode has 20 bytes. */
static uint64_t make_method(struct code_image *c, const char *class_name, const char *name,
                            const char *signature)
{
    const struct hotspot_layout *l = &c->layout;
    struct image *im = &c->im;
    static const uint8_t zeros[1024];
    const char *const texts[] = {class_name, name, signature, "Scene.java"};
    uint64_t symbols[4], method = put(im, zeros, 128), constant = put(im, zeros, 256),
                         pool = put(im, zeros, 256), holder = put(im, zeros, 512);
    for (unsigned i = 0; i < 4; i++) {
        uint8_t symbol[64] = {1, 0, (uint8_t)i, 0x5a};
        symbol[l->symbol_length] = (uint8_t)strlen(texts[i]);
        memcpy(symbol + l->symbol_body, texts[i], strlen(texts[i]));
        symbols[i] = put(im, symbol, sizeof(symbol));
        poke64(im, pool + (uint64_t)l->sizeof_pool + 8 * i, symbols[i]);
    }
    poke64(im, method + (uint64_t)l->method_const, constant);
    poke64(im, constant + (uint64_t)l->const_pool, pool);
    poke32(im, constant + (uint64_t)l->const_size, 32);
    poke(im, constant + (uint64_t)l->const_code_size, (uint16_t[]){20}, 2);
    poke(im, constant + (uint64_t)l->const_name, (uint16_t[]){1}, 2);
    poke(im, constant + (uint64_t)l->const_signature, (uint16_t[]){2}, 2);
    poke(im, constant + (uint64_t)l->const_flags, (uint16_t[]){(uint16_t)l->has_line_numbers}, 2);
    /* The line table follows the bytecode: line 10 from 0 on (an escape), 11 from 4 on, end. */
    poke(im, constant + (uint64_t)l->sizeof_const_method + 20,
         (uint8_t[]){0xff, 0, 20, 4 << 3 | 1, 0}, 5);
    poke32(im, pool + (uint64_t)l->pool_length, 4);
    poke64(im, pool + (uint64_t)l->pool_holder, holder);
    poke(im, pool + (uint64_t)l->pool_source_file, (uint16_t[]){3}, 2);
    poke64(im, holder + (uint64_t)l->klass_name, symbols[0]);
    return method;
}

static void make_scene(struct scene *s, const struct arch *arch)
{
    static const uint8_t scopes[] = {0, 0, 1, 8, 0, 0, 0, 0, 1, 2, 237, 1}, zeros[STACK_BYTES];
    struct code_image *c = &s->code;
    *s = (struct scene){0};
    make_code(c, scopes, sizeof(scopes));
    const struct hotspot_layout *l = &c->layout;
    c->method[0] = make_method(c, "p/Outer", "outer", "()V");
    c->method[1] = make_method(c, "p/Inner", "inner", "(I)I");
    s->interpreted = make_method(c, "p/Main", "main", "([Ljava/lang/String;)V");
    poke(&c->im, c->blob + 620, c->method, 16);
    poke64(&c->im, c->blob + (uint64_t)l->nm_method, c->method[0]);
    c->im.bytes[c->blob - BASE + (unsigned)l->nm_comp_level] = 4;
    /* A second block holds the call stub; the interpreter lies after all blocks. */
    uint64_t stub = c->cache.low + 16 * 128;
    for (unsigned i = 16; i < 24; i++)
        c->im.bytes[c->cache.heaps[0].segmap - BASE + i] = (uint8_t)(i - 16);
    c->im.bytes[stub - BASE + (unsigned)l->block_used] = 1;
    stub += (uint64_t)l->sizeof_block;
    poke64(&c->im, stub + (uint64_t)l->blob_name, put_string(&c->im, "StubRoutines (1)"));
    poke32(&c->im, stub + (uint64_t)l->blob_size, 1000);
    poke64(&c->im, stub + (uint64_t)l->blob_code_begin, stub + 200);
    poke64(&c->im, stub + (uint64_t)l->blob_code_end, stub + 1000);
    c->cache.call_stub_return = stub + 300;
    c->cache.interpreter = c->cache.low + 6000;
    c->cache.interpreter_end = c->cache.high;

    s->stack = put(&c->im, zeros, sizeof(zeros));
    uint64_t high = s->stack + STACK_BYTES, entry_fp = high - 256, fp = entry_fp - 256;
    /* The call wrapper is on the stack too; its anchor says that there is no earlier Java frame. */
    poke64(&c->im, entry_fp + (uint64_t)(int64_t)(arch->wrapper_slot * 8), high - 64);
    /*
     * The interpreted frame: saved fp, return address, then downwards sender sp, last sp, method
     * ... bytecode pointer.
     */
    uint64_t constant;
    memcpy(&constant, c->im.bytes + (s->interpreted - BASE) + l->method_const, 8);
    poke64(&c->im, fp, entry_fp);
    poke64(&c->im, fp + 8, c->cache.call_stub_return);
    poke64(&c->im, fp - 8, fp + 16);
    poke64(&c->im, fp - 24, s->interpreted);
    poke64(&c->im, fp - 8 * l->interpreter_bcp, constant + (uint64_t)l->sizeof_const_method + 5);
    /* The compiled frame of 48 bytes lies below it. */
    s->sp = fp - 128 - 48;
    s->return_slot = s->sp + 40;
    poke64(&c->im, s->return_slot, c->cache.interpreter + 77);
    poke64(&c->im, s->sp + 32, fp);

    s->walker = (struct walker){.layout = *l, .memory = c->memory, .arch = arch};
    s->walker.code = c->cache;
    s->walker.code.layout = &s->walker.layout;
    s->walk = (struct walk){.w = &s->walker,
                            .stack_low = s->sp,
                            .stack_high = high,
                            .frames = s->frames,
                            .max = FRAMES,
                            .top = true};
    s->walk.r = (struct registers){.pc = c->code + 21, .sp = s->sp, .fp = 3};
}

static void drop_scene(struct scene *s)
{
    free(s->code.im.bytes);
}

static void expect(const struct scene *s, unsigned i, uint32_t kind, uint64_t method, int32_t bci)
{
    assert_true(i < s->walk.count);
    assert_int_equal(s->frames[i].kind, kind);
    assert_int_equal(walk_id_method(s->frames[i].id), method);
    assert_int_equal(s->frames[i].bci, bci);
}

static const struct arch *const architectures[] = {&arch_x86_64, &arch_aarch64};

static void compiled_interpreted_and_entry(void **state)
{
    for (unsigned a = 0; a < ARRAY_SIZE(architectures); a++) {
        struct scene s;
        make_scene(&s, architectures[a]);
        walk_run(&s.walk, &s.end);
        assert_int_equal(s.end.status, WALK_COMPLETE);
        assert_false(s.end.recovered);
        assert_int_equal(s.walk.count, 3);
        expect(&s, 0, WALK_INLINED, s.code.method[1], 300);
        expect(&s, 1, WALK_C2, s.code.method[0], 7);
        expect(&s, 2, WALK_INTERPRETED, s.interpreted, 5);
        drop_scene(&s);
    }
}

static void before_the_frame_is_built(void **state)
{
    /* sub rsp, 40; mov [rsp + 32], rbp  and  sub sp, sp, #48; stp x29, x30, [sp, #32] */
    static const uint8_t x86[] = {0x48, 0x83, 0xec, 0x28, 0x48, 0x89, 0x6c, 0x24, 0x20};
    static const uint32_t arm[] = {0xd100c3ff, 0xa9027bfd};
    for (unsigned a = 0; a < ARRAY_SIZE(architectures); a++) {
        struct scene s;
        bool is_arm = architectures[a] == &arch_aarch64;
        make_scene(&s, architectures[a]);
        poke(&s.code.im, s.code.code, is_arm ? (const void *)arm : x86,
             is_arm ? sizeof(arm) : sizeof(x86));
        poke64(&s.code.im, s.code.blob + (uint64_t)s.code.layout.nm_entry_point, s.code.code);
        s.walk.r.pc = s.code.code;
        s.walk.r.fp = s.return_slot + 8 + 128; /* the caller's, still in the register */
        s.walk.r.sp = is_arm ? s.return_slot + 8 : s.return_slot;
        s.walk.r.link = s.code.cache.interpreter + 77;
        if (is_arm)
            poke64(&s.code.im, s.return_slot, 0xdead);
        walk_run(&s.walk, &s.end);
        assert_int_equal(s.end.status, WALK_COMPLETE);
        assert_int_equal(s.walk.count, 2);
        expect(&s, 0, WALK_C2, s.code.method[0], 7);
        expect(&s, 1, WALK_INTERPRETED, s.interpreted, 5);
        drop_scene(&s);
    }
}

/*
 * aarch64: two interpreted frames, of which the inner one lies above what the outer one notes as
 * its stack pointer, because its locals are the outer one's expressions.
 */
static void interpreted_frames_overlap(void **state)
{
    struct scene s;
    make_scene(&s, &arch_aarch64);
    uint64_t outer = s.return_slot + 8 + 128, inner = outer - 128, constant;
    const struct hotspot_layout *l = &s.code.layout;
    memcpy(&constant, s.code.im.bytes + (s.interpreted - BASE) + l->method_const, 8);
    poke64(&s.code.im, inner, outer);
    poke64(&s.code.im, inner + 8, s.code.cache.interpreter + 99);
    poke64(&s.code.im, inner - 8, inner - 64);
    poke64(&s.code.im, inner - 24, s.interpreted);
    poke64(&s.code.im, inner - 8 * l->interpreter_bcp,
           constant + (uint64_t)l->sizeof_const_method + 3);
    s.walk.stack_low = inner - 96;
    s.walk.r = (struct registers){
        .pc = s.code.cache.interpreter + 50, .sp = inner - 96, .fp = inner, .bcp = 1};
    walk_run(&s.walk, &s.end);
    assert_int_equal(s.end.status, WALK_COMPLETE);
    assert_false(s.end.recovered);
    assert_int_equal(s.walk.count, 2);
    expect(&s, 0, WALK_INTERPRETED, s.interpreted, 3);
    expect(&s, 1, WALK_INTERPRETED, s.interpreted, 5);
    drop_scene(&s);
}

/* Walks again from the compiled frame, as if from a caller's frame. */
static void walk_as_caller(struct scene *s)
{
    s->walk.r = (struct registers){.pc = s->code.code + 22, .sp = s->sp, .fp = 3};
    s->walk.top = s->walk.done = s->walk.recovered = false;
    s->walk.count = s->notes.count = 0;
    s->walk.notes = &s->notes;
    walk_run(&s->walk, &s->end);
}

static void a_site_counts_for_its_compilation(void **state)
{
    struct scene s;
    make_scene(&s, &arch_x86_64);
    s.walker.sites = sites_new();
    assert_non_null(s.walker.sites);
    walk_as_caller(&s);
    expect(&s, 0, WALK_INLINED, s.code.method[1], 300);
    expect(&s, 1, WALK_C2, s.code.method[0], 7);
    struct walk_frame first[3];
    memcpy(first, s.frames, sizeof(first));

    /*
     * The site must return the level that was cached; only reading the nmethod again would show the
     * other level.
     */
    uint8_t *level = &s.code.im.bytes[s.code.blob - BASE + (unsigned)s.code.layout.nm_comp_level];
    *level = 1;
    walk_as_caller(&s);
    assert_int_equal(s.end.status, WALK_COMPLETE);
    assert_int_equal(s.walk.count, 3);
    assert_memory_equal(first, s.frames, sizeof(first));

    /*
     * Another compilation at the same place must be read again, and so must a compilation of
     * another method.
     */
    poke32(&s.code.im, s.code.blob + (uint64_t)s.code.layout.nm_compile_id, 77);
    walk_as_caller(&s);
    expect(&s, 1, WALK_C1, s.code.method[0], 7);
    *level = 4;
    poke64(&s.code.im, s.code.blob + (uint64_t)s.code.layout.nm_method, s.code.method[1]);
    walk_as_caller(&s);
    expect(&s, 1, WALK_C2, s.code.method[0], 7);
    /* If its return address is invalid, the next frame ends the walk, as it does without a site. */
    poke64(&s.code.im, s.return_slot, 0xdead);
    walk_as_caller(&s);
    assert_int_equal(s.end.status, WALK_BROKEN);
    assert_int_equal(s.walk.count, 2);
    sites_free(s.walker.sites);
    drop_scene(&s);
}

/*
 * Places the scene in this process's own memory at the image's addresses. Only such walks record
 * claims about methods, which are checked at the end of the walk.
 */
static void move_in(struct scene *s, struct claims *claims)
{
    void *at = mmap((void *)(uintptr_t)BASE, IMAGE_SIZE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_ptr_equal(at, (void *)(uintptr_t)BASE);
    memcpy(at, s->code.im.bytes, IMAGE_SIZE);
    free(s->code.im.bytes);
    s->code.im.bytes = at;
    assert_int_equal(memory_guard_init(), 0);
    s->walker.memory = s->code.memory = process_memory;
    s->walker.sites = sites_new();
    s->walker.known = known_methods_new();
    assert_true(s->walker.sites && s->walker.known);
    s->walk.claims = claims;
}

static void move_out(struct scene *s)
{
    sites_free(s->walker.sites);
    known_methods_free(s->walker.known);
    munmap(s->code.im.bytes, IMAGE_SIZE);
}

static void walk_claiming(struct scene *s, struct claims *claims, bool top)
{
    s->walk.r = (struct registers){.pc = s->code.code + (top ? 21 : 22), .sp = s->sp, .fp = 3};
    s->walk.mapped_bytes = s->walk.fetched = claims->sites = claims->methods = s->notes.count = 0;
    s->walk.claims = claims;
    s->walk.notes = &s->notes;
    s->walk.top = top;
    s->walk.done = s->walk.recovered = s->walk.refuted = false;
    s->walk.count = 0;
    walk_run(&s->walk, &s->end);
}

static void claims_are_looked_at_in_the_end(void **state)
{
    struct scene s;
    struct claims claims;
    make_scene(&s, &arch_x86_64);
    move_in(&s, &claims);
    uint8_t *level = &s.code.im.bytes[s.code.blob - BASE + (unsigned)s.code.layout.nm_comp_level];
    for (int top = 0; top < 2; top++) {
        for (int again = 0; again < 2; again++) {
            /* Only reading it again would show the other level. */
            *level = again ? 1 : 4;
            walk_claiming(&s, &claims, top);
            assert_int_equal(s.end.status, WALK_COMPLETE);
            assert_int_equal(s.walk.count, 3);
            expect(&s, 0, WALK_INLINED, s.code.method[1], 300);
            expect(&s, 1, WALK_C2, s.code.method[0], 7);
            expect(&s, 2, WALK_INTERPRETED, s.interpreted, 5);
            assert_true(walk_id_check(s.frames[2].id) != 0);
            assert_non_null(s.walk.claims);
        }
        /* Another compilation: the walk is repeated without claims. */
        poke32(&s.code.im, s.code.blob + (uint64_t)s.code.layout.nm_compile_id,
               100 + (uint32_t)top);
        walk_claiming(&s, &claims, top);
        assert_null(s.walk.claims);
        assert_int_equal(s.walk.count, 3);
        expect(&s, 1, WALK_C1, s.code.method[0], 7);
        expect(&s, 2, WALK_INTERPRETED, s.interpreted, 5);
    }
    move_out(&s);
}

static void a_word_that_is_no_method_is_none(void **state)
{
    struct scene s;
    struct claims claims;
    make_scene(&s, &arch_x86_64);
    move_in(&s, &claims);
    uint64_t fp;
    memcpy(&fp, s.code.im.bytes + (s.sp + 32 - BASE), 8);
    poke64(&s.code.im, fp - 24, s.stack);
    walk_claiming(&s, &claims, false);
    assert_null(s.walk.claims);
    assert_int_equal(s.end.status, WALK_BROKEN);
    assert_int_equal(s.walk.count, 2);
    expect(&s, 1, WALK_C2, s.code.method[0], 7);
    move_out(&s);
}

static void know(struct scene *s, uint64_t method, uint32_t epoch, struct known_method *ret)
{
    const struct hotspot_layout *l = &s->walker.layout;
    if (known_method_find(s->walker.known, l, &process_memory, method, epoch, ret))
        return;
    assert_true(known_method_read(l, &process_memory, method, ret));
    known_method_note(s->walker.known, epoch, ret);
}

/*
 * A class of another name in the same memory, with the same pointers, is recognized by its name. If
 * no class was unloaded, the name is not checked.
 */
static void methods_hold_until_a_class_is_unloaded(void **state)
{
    struct scene s;
    struct claims claims;
    struct known_method known;
    struct method_parts parts;
    make_scene(&s, &arch_x86_64);
    move_in(&s, &claims);
    const struct hotspot_layout *l = &s.walker.layout;
    uint64_t method = s.interpreted;
    know(&s, method, 5, &known);
    uint32_t check = known.check;
    assert_true(method_parts(l, &process_memory, method, &parts));
    s.code.im.bytes[parts.class_name - BASE + 3] ^= 0x41; /* the hash of the name */
    know(&s, method, 5, &known);
    assert_int_equal(known.check, check);
    know(&s, method, 6, &known);
    assert_int_not_equal(known.check, check);
    check = known.check;
    /* Where unloading cannot be detected, the name is checked each time. */
    s.code.im.bytes[parts.class_name - BASE + 3] ^= 0x41;
    know(&s, method, 0, &known);
    assert_int_not_equal(known.check, check);
    move_out(&s);
}

/*
 * Writes a counter of the VM in the form of its file: length, name, no vector, type and so on,
 * name, value.
 */
static size_t put_counter(uint8_t *at, const char *name, uint64_t value)
{
    uint32_t head[] = {80, 20, 0, 'J', 64};
    memcpy(at, head, sizeof(head));
    memcpy(at + 20, name, strlen(name) + 1);
    memcpy(at + 64, &value, sizeof(value));
    return 80;
}

static void unloaded_classes_are_counted_by_the_vm(void **state)
{
    static _Alignas(8) uint8_t data[512];
    uint32_t numbers[] = {0, 0, 32, 2};
    struct unloads u;
    uint64_t start = (uint64_t)(uintptr_t)data;
    struct hotspot_layout l = {.perf_start = (uint64_t)(uintptr_t)&start};
    memcpy(data, (uint8_t[]){0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1}, 8);
    size_t used = 32;
    used += put_counter(data + used, "java.cls.unloadedClasses", 3);
    used += put_counter(data + used, "java.cls.sharedUnloadedClasses", 1);
    uint32_t size = (uint32_t)used;
    memcpy(data + 8, &size, 4);
    memcpy(data + 24, numbers + 2, 8);

    unloads_find(&u, &l, &process_memory);
    uint32_t epoch = unloads_epoch(&u, &process_memory);
    assert_int_not_equal(epoch, 0);
    assert_int_equal(unloads_epoch(&u, &process_memory), epoch);
    data[32 + 64]++;
    assert_int_not_equal(unloads_epoch(&u, &process_memory), epoch);
    data[32 + 64]--;
    data[32 + 80 + 64]++;
    assert_int_not_equal(unloads_epoch(&u, &process_memory), epoch);
    /* If one of the two counters is missing, unloading cannot be detected. */
    data[32 + 80 + 20] ^= 1;
    unloads_find(&u, &l, &process_memory);
    assert_int_equal(unloads_epoch(&u, &process_memory), 0);
    unloads_find(&u, &(struct hotspot_layout){0}, &process_memory);
    assert_int_equal(unloads_epoch(&u, &process_memory), 0);
}

/* Makes the copy of the scene that a handler would make, and clears the stack itself. */
static struct snapshot *copy_of(struct scene *s)
{
    uint64_t high = s->stack + STACK_BYTES;
    struct snapshot measured = {.registers = s->walk.r,
                                .low = s->sp,
                                .high = high,
                                .epoch = unloads_epoch(&s->walker.unloads, &process_memory)},
                    *copy = malloc(snapshot_bytes(&measured));
    assert_non_null(copy);
    snapshot_take(&s->walker, &measured, copy);
    memset(s->code.im.bytes + (s->stack - BASE), 0xee, STACK_BYTES);
    return copy;
}

struct copied {
    _Alignas(8) uint64_t unloaded[2]; /* the VM's counters */
    struct claims claims;
    struct snapshot_walker *walker;
    struct snapshot *copy;
};

/* Makes a scene whose stack has been copied. */
static void make_copy(struct scene *s, struct copied *ret)
{
    ret->unloaded[0] = ret->unloaded[1] = 0;
    make_scene(s, &arch_x86_64);
    move_in(s, &ret->claims);
    s->walker.unloads = (struct unloads){
        {(uint64_t)(uintptr_t)&ret->unloaded[0], (uint64_t)(uintptr_t)&ret->unloaded[1]}};
    ret->walker = snapshot_walker_new(&s->walker);
    ret->copy = copy_of(s);
    assert_non_null(ret->walker);
}

static void drop_copy(struct scene *s, struct copied *c)
{
    free(c->copy);
    free(c->walker);
    move_out(s);
}

static void walk_copy(struct scene *s, const struct copied *c)
{
    s->walk.count = snapshot_walk(c->walker, c->copy, 0, s->frames, FRAMES, &s->end);
}

static void a_copied_stack_is_walked_as_it_was(void **state)
{
    struct scene s;
    struct copied c;
    make_copy(&s, &c);
    assert_true(snapshot_possible(&s.walker));
    for (unsigned again = 0; again < 2; again++) {
        walk_copy(&s, &c);
        assert_int_equal(s.end.status, WALK_COMPLETE);
        assert_int_equal(s.walk.count, 3);
        expect(&s, 0, WALK_INLINED, s.code.method[1], 300);
        expect(&s, 1, WALK_C2, s.code.method[0], 7);
        expect(&s, 2, WALK_INTERPRETED, s.interpreted, 5);
        for (unsigned i = 0; i < 3; i++)
            assert_int_not_equal(walk_id_check(s.frames[i].id), 0);
    }
    /*
     * Another compilation is at a known place. For this sample it is unknown which of the two was
     * running, but for the next one it is known.
     */
    poke32(&s.code.im, s.code.blob + (uint64_t)s.code.layout.nm_compile_id, 77);
    walk_copy(&s, &c);
    assert_int_equal(s.end.status, WALK_BROKEN);
    assert_int_equal(s.walk.count, 0);
    walk_copy(&s, &c);
    assert_int_equal(s.end.status, WALK_COMPLETE);
    assert_int_equal(s.walk.count, 3);
    drop_copy(&s, &c);
}

static void a_method_that_may_be_another_is_not_named(void **state)
{
    struct scene s;
    struct copied c;
    make_copy(&s, &c);
    /* A class was unloaded between the copy and the walk, and nothing was known before. */
    c.unloaded[0]++;
    walk_copy(&s, &c);
    assert_int_equal(s.end.status, WALK_COMPLETE);
    assert_int_equal(s.walk.count, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(walk_id_check(s.frames[i].id), 0);
    expect(&s, 2, WALK_INTERPRETED, 0, -1);
    /*
     * A copy made afterwards is certain, and when the next class is unloaded, what was known by
     * then remains valid.
     */
    c.copy->epoch = unloads_epoch(&s.walker.unloads, &process_memory);
    walk_copy(&s, &c);
    expect(&s, 2, WALK_INTERPRETED, s.interpreted, 5);
    uint64_t id = s.frames[2].id;
    c.unloaded[1]++;
    for (unsigned gone = 0; gone < 2; gone++) {
        walk_copy(&s, &c);
        assert_int_equal(s.frames[2].id, id);
        /* Change the method itself as well. */
        poke64(&s.code.im, s.interpreted + (uint64_t)s.code.layout.method_const, 0);
    }
    /*
     * What was read while it was uncertain, from a class that may have been dead but not yet freed,
     * must not be used for a class that takes its place later.
     */
    c.copy->epoch = unloads_epoch(&s.walker.unloads, &process_memory);
    walk_copy(&s, &c);
    assert_int_equal(s.end.status, WALK_COMPLETE);
    expect(&s, 2, WALK_INTERPRETED, 0, -1);
    drop_copy(&s, &c);
}

/*
 * The copy of a stack is walked late, when another class with its compiled code is in the same
 * places. It must not leave sites that combine the new compilation with the old methods.
 */
static void sites_of_a_late_walk_are_not_kept(void **state)
{
    struct scene s;
    struct copied c;
    struct method_parts parts;
    make_copy(&s, &c);
    walk_copy(&s, &c);
    assert_int_equal(s.walk.count, 3);
    uint64_t old[2] = {s.frames[0].id, s.frames[1].id};
    for (unsigned i = 0; i < 2; i++) {
        assert_true(method_parts(&s.walker.layout, &process_memory, s.code.method[i], &parts));
        s.code.im.bytes[parts.class_name - BASE + 3] ^= 0x41; /* the hash of the name */
    }
    poke32(&s.code.im, s.code.blob + (uint64_t)s.code.layout.nm_compile_id, 77);
    c.unloaded[0]++;
    walk_copy(&s, &c);
    assert_int_equal(s.end.status, WALK_BROKEN); /* the site of the old compilation is forgotten */
    walk_copy(&s, &c);
    assert_int_equal(s.end.status, WALK_COMPLETE);
    c.copy->epoch = unloads_epoch(&s.walker.unloads, &process_memory);
    walk_copy(&s, &c);
    assert_int_equal(s.walk.count, 3);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_not_equal(walk_id_check(s.frames[i].id), 0);
        assert_int_not_equal(s.frames[i].id, old[i]);
    }
    drop_copy(&s, &c);
}

static void a_bytecode_pointer_of_another_method_is_seen(void **state)
{
    struct scene s;
    struct copied c;
    make_copy(&s, &c);
    c.copy->words[(s.sp + 48 + 128 - 8 * (uint64_t)s.code.layout.interpreter_bcp - c.copy->low) /
                  8] += 100;
    walk_copy(&s, &c);
    assert_int_equal(s.end.status, WALK_COMPLETE);
    expect(&s, 2, WALK_INTERPRETED, 0, -1);
    drop_copy(&s, &c);
}

static void depth_ends_the_walk(void **state)
{
    struct scene s;
    make_scene(&s, &arch_x86_64);
    s.walk.max = 2;
    walk_run(&s.walk, &s.end);
    assert_int_equal(s.end.status, WALK_DEPTH);
    assert_int_equal(s.walk.count, 2);
    drop_scene(&s);
}

static void a_lost_caller_is_looked_for_in_the_anchor(void **state)
{
    struct scene s;
    make_scene(&s, &arch_x86_64);
    uint64_t fp;
    memcpy(&fp, s.code.im.bytes + (s.sp + 32 - BASE), 8);
    poke64(&s.code.im, s.return_slot, 0xdead);
    s.walk.anchor = (struct anchor){.sp = fp - 104, .pc = s.code.cache.interpreter + 77, .fp = fp};
    walk_run(&s.walk, &s.end);
    assert_int_equal(s.end.status, WALK_COMPLETE);
    assert_true(s.end.recovered);
    expect(&s, 2, WALK_INTERPRETED, s.interpreted, 5);
    drop_scene(&s);
    /* Without a method the walk ends with what it has. */
    make_scene(&s, &arch_x86_64);
    poke64(&s.code.im, s.return_slot, 0xdead);
    walk_run(&s.walk, &s.end);
    assert_int_equal(s.end.status, WALK_BROKEN);
    assert_int_equal(s.walk.count, 2);
    drop_scene(&s);
}

static void methods_are_described_while_they_are_there(void **state)
{
    struct scene s;
    struct method_description d;
    make_scene(&s, &arch_x86_64);
    walk_run(&s.walk, &s.end);
    assert_int_equal(walker_describe(&s.walker, s.frames[0].id, &d), 0);
    assert_string_equal(buf_str(&d.class_name), "p/Inner");
    assert_string_equal(buf_str(&d.name), "inner");
    assert_string_equal(buf_str(&d.signature), "(I)I");
    assert_string_equal(buf_str(&d.source_file), "Scene.java");
    assert_int_equal(d.line_count, 2);
    assert_int_equal(method_line_of(&d, 3), 10);
    assert_int_equal(method_line_of(&d, 4), 11);
    assert_int_equal(method_line_of(&d, -1), 0);
    method_description_release(&d);
    /* Another class at the same addresses: the hash of its name differs. */
    uint64_t symbol;
    uint64_t holder_name = 0;
    for (uint64_t at = BASE; at + 8 < BASE + s.code.im.used && !holder_name; at += 8) {
        memcpy(&symbol, s.code.im.bytes + (at - BASE), 8);
        if (symbol > BASE && symbol - BASE < s.code.im.used &&
            memcmp(s.code.im.bytes + (symbol - BASE) + s.code.layout.symbol_body, "p/Inner", 7) ==
                0)
            holder_name = symbol;
    }
    assert_true(holder_name != 0);
    s.code.im.bytes[holder_name - BASE] ^= 7; /* its reference count; it is still the same method */
    assert_int_equal(walker_describe(&s.walker, s.frames[0].id, &d), 0);
    method_description_release(&d);
    s.code.im.bytes[holder_name - BASE + 3] ^= 0x41; /* its hash */
    assert_int_equal(walker_describe(&s.walker, s.frames[0].id, &d), -ESTALE);
    drop_scene(&s);
}

static void damaged_images_end(void **state)
{
    uint64_t seed = 7;
    unsigned complete = 0, other = 0;
    struct scene s;
    make_scene(&s, &arch_x86_64);
    uint8_t *original = malloc(IMAGE_SIZE);
    memcpy(original, s.code.im.bytes, IMAGE_SIZE);
    struct walk fresh = s.walk;
    for (unsigned n = 0; n < 20000; n++) {
        /* Overwrites eight words of code, stack or methods. */
        for (unsigned i = 0; i < 8; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            uint64_t from = s.code.cache.low - BASE,
                     at = from + (seed >> 20) % (s.code.im.used - from);
            s.code.im.bytes[at] ^= (uint8_t)(seed >> 56) | 1;
        }
        s.walk = fresh;
        walk_run(&s.walk, &s.end);
        complete += s.end.status == WALK_COMPLETE;
        other += s.end.status != WALK_COMPLETE;
        memcpy(s.code.im.bytes + (s.code.cache.low - BASE), original + (s.code.cache.low - BASE),
               s.code.im.used - (s.code.cache.low - BASE));
    }
    assert_true(complete > 0 && other > 0);
    free(original);
    drop_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_interpreted_and_entry),
        cmocka_unit_test(before_the_frame_is_built),
        cmocka_unit_test(interpreted_frames_overlap),
        cmocka_unit_test(a_site_counts_for_its_compilation),
        cmocka_unit_test(claims_are_looked_at_in_the_end),
        cmocka_unit_test(a_word_that_is_no_method_is_none),
        cmocka_unit_test(methods_hold_until_a_class_is_unloaded),
        cmocka_unit_test(unloaded_classes_are_counted_by_the_vm),
        cmocka_unit_test(a_copied_stack_is_walked_as_it_was),
        cmocka_unit_test(a_method_that_may_be_another_is_not_named),
        cmocka_unit_test(sites_of_a_late_walk_are_not_kept),
        cmocka_unit_test(a_bytecode_pointer_of_another_method_is_seen),
        cmocka_unit_test(depth_ends_the_walk),
        cmocka_unit_test(a_lost_caller_is_looked_for_in_the_anchor),
        cmocka_unit_test(methods_are_described_while_they_are_there),
        cmocka_unit_test(damaged_images_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
