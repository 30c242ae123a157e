/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the stack walker on a core file, without a VM: walk_core CORE [ROOT] writes the stack of
 * each thread. ROOT is the folder that was / for the process; its libraries are found there.
 */
#include "core_file.h"
#include "hotspot/method.h"
#include "unwind/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_MAX = 4096, STACK_BYTES = 64 << 20 };

static int make_walker(struct walker *w, struct core *core, char *why, size_t size)
{
    struct hotspot_image image = {.context = core, .symbol = core_symbol, .read = core_read};
    *w = (struct walker){
        .memory = {core, core_read}, .arch = &arch_x86_64, .modules = core_modules(core)};
    int r = hotspot_layout_read(&image, &w->layout, why, size);
    if (r == 0)
        r = code_cache_init(&w->code, &w->layout, &w->memory, why, size);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < w->code.entry_count; i++)
        w->entry_frame[i] = w->arch->interpreter_frame(&w->memory, w->code.entries[i].begin,
                                                       w->code.entries[i].end);
    w->native_cache = calloc(NATIVE_CACHE_SIZE, sizeof(*w->native_cache));
    return core_symbol(core, "gHotSpotVMStructs", &w->libjvm);
}

static void write_frame(const struct walker *w, const struct walk_frame *f)
{
    static const char *const kinds[WALK_KINDS] = {"interpreted",   "c1",     "c2", "inlined",
                                                  "native-method", "native", "vm", "stub",
                                                  "heap",          "kernel"};
    uint64_t pc = walk_id_pc(f->id);
    struct method_description d;
    char name[128];
    printf("  %s ", kinds[f->kind]);
    if (walk_is_java(f->kind)) {
        if (method_describe(&w->layout, &w->memory, walk_id_method(f->id), walk_id_check(f->id),
                            &d) < 0) {
            puts("?");
            return;
        }
        printf("%s.%s%s:%u\n", buf_str(&d.class_name), buf_str(&d.name), buf_str(&d.signature),
               method_line_of(&d, f->bci));
        method_description_release(&d);
        return;
    }
    const struct module *m = module_find(w->modules, pc);
    walker_stub_name(w, pc, name, sizeof(name));
    printf("%s+0x%llx\n", m ? m->path : name, (unsigned long long)(m ? pc - m->base : pc));
}

static void write_stack(const struct walker *w, const struct core_thread *t)
{
    static struct walk_frame frames[FRAMES_MAX];
    static const char *const ends[WALK_STATUSES] = {"complete", "depth", "heap", "broken", "fault"};
    struct walk_end end;
    struct walk k = {.w = w,
                     .modules = w->modules,
                     .r = t->registers,
                     .stack_low = t->registers.sp & ~UINT64_C(7),
                     .stack_high = (t->registers.sp & ~UINT64_C(7)) + STACK_BYTES,
                     .frames = frames,
                     .max = FRAMES_MAX,
                     .flags = WALK_WITH_NATIVE,
                     .top = true};
    walk_run(&k, &end);
    printf("thread %d %s%s\n", t->tid, ends[end.status], end.recovered ? " resumed" : "");
    for (unsigned i = 0; i < k.count; i++)
        write_frame(w, &frames[i]);
}

int main(int argc, char **argv)
{
    char why[200];
    struct core *core;
    static struct walker w;
    unsigned n;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: walk_core CORE [ROOT]\n");
        return 2;
    }
    if (core_open(&core, argv[1], argc > 2 ? argv[2] : "", why, sizeof(why)) < 0 ||
        make_walker(&w, core, why, sizeof(why)) < 0) {
        fprintf(stderr, "walk_core: %s: %s\n", argv[1], why);
        return 1;
    }
    const struct core_thread *threads = core_threads(core, &n);
    for (unsigned i = 0; i < n; i++)
        write_stack(&w, &threads[i]);
    free(w.native_cache);
    core_close(core);
    return 0;
}
