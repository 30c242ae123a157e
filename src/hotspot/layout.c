/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot/layout.h"

#include "hotspot/tables.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { FLAGS_MAX = 10000 };

static const int known_versions[] = {8, 11, 17, 21, 25, 26, 27};

/* An item to find in the tables, for the versions from `first` to `last`. */
struct row {
    uint16_t member; /* of struct hotspot_layout */
    uint8_t first, last;
    bool optional; /* a version in the range may lack it */
    const char *type, *field;
    int limit; /* a larger offset is refused */
};

#define MEMBER(m) offsetof(struct hotspot_layout, m)
#define FIELD(m, first, last, type, field)               \
    {                                                    \
        MEMBER(m), first, last, false, type, field, 4096 \
    }
#define MAYBE(m, first, last, type, field)              \
    {                                                   \
        MEMBER(m), first, last, true, type, field, 4096 \
    }
#define LAST 99

/* clang-format off */
static const struct row fields[] = {
    FIELD(thread_anchor, 8, LAST, "JavaThread", "_anchor"),
    FIELD(thread_stack_base, 8, LAST, "JavaThread", "_stack_base"),
    FIELD(thread_stack_size, 8, LAST, "JavaThread", "_stack_size"),
    FIELD(thread_state, 8, LAST, "JavaThread", "_thread_state"),
    FIELD(thread_cont_entry, 25, LAST, "JavaThread", "_cont_entry"),
    MAYBE(collections, 25, LAST, "CollectedHeap", "_total_collections"),
    MAYBE(collecting, 25, LAST, "CollectedHeap", "_is_stw_gc_active"),
    FIELD(anchor_sp, 8, LAST, "JavaFrameAnchor", "_last_Java_sp"),
    FIELD(anchor_pc, 8, LAST, "JavaFrameAnchor", "_last_Java_pc"),
    MAYBE(anchor_fp, 8, LAST, "JavaFrameAnchor", "_last_Java_fp"),
    FIELD(wrapper_anchor, 8, LAST, "JavaCallWrapper", "_anchor"),
    FIELD(heap_memory, 8, LAST, "CodeHeap", "_memory"),
    FIELD(heap_segmap, 8, LAST, "CodeHeap", "_segmap"),
    FIELD(heap_log2_segment, 8, LAST, "CodeHeap", "_log2_segment_size"),
    FIELD(space_low, 8, LAST, "VirtualSpace", "_low"),
    FIELD(space_low_boundary, 8, LAST, "VirtualSpace", "_low_boundary"),
    FIELD(space_high_boundary, 8, LAST, "VirtualSpace", "_high_boundary"),
    FIELD(array_len, 8, 11, "GenericGrowableArray", "_len"),
    FIELD(array_len, 17, LAST, "GrowableArrayBase", "_len"),
    FIELD(array_data, 8, LAST, "GrowableArray<int>", "_data"),
    FIELD(block_used, 8, LAST, "HeapBlock::Header", "_used"),
    FIELD(blob_name, 8, LAST, "CodeBlob", "_name"),
    FIELD(blob_size, 8, LAST, "CodeBlob", "_size"),
    FIELD(blob_code_begin, 11, 21, "CodeBlob", "_code_begin"),
    FIELD(blob_code_end, 11, 21, "CodeBlob", "_code_end"),
    FIELD(blob_code_offset, 8, 8, "CodeBlob", "_code_offset"),
    FIELD(blob_code_offset, 25, LAST, "CodeBlob", "_code_offset"),
    FIELD(blob_data_offset, 8, LAST, "CodeBlob", "_data_offset"),
    FIELD(blob_frame_complete, 8, LAST, "CodeBlob", "_frame_complete_offset"),
    FIELD(blob_frame_size, 8, LAST, "CodeBlob", "_frame_size"),
    FIELD(blob_mutable_data, 25, LAST, "CodeBlob", "_mutable_data"),
    FIELD(blob_relocation_size, 25, LAST, "CodeBlob", "_relocation_size"),
    FIELD(nm_method, 8, 8, "nmethod", "_method"),
    FIELD(nm_method, 11, 21, "CompiledMethod", "_method"),
    FIELD(nm_method, 25, LAST, "nmethod", "_method"),
    FIELD(nm_comp_level, 8, LAST, "nmethod", "_comp_level"),
    FIELD(nm_compile_id, 8, LAST, "nmethod", "_compile_id"),
    FIELD(nm_entry_bci, 8, LAST, "nmethod", "_entry_bci"),
    FIELD(nm_orig_pc, 8, LAST, "nmethod", "_orig_pc_offset"),
    FIELD(nm_metadata, 8, 21, "nmethod", "_metadata_offset"),
    FIELD(nm_scopes_data, 8, 8, "nmethod", "_scopes_data_offset"),
    FIELD(nm_scopes_data_begin, 11, 21, "CompiledMethod", "_scopes_data_begin"),
    FIELD(nm_scopes_data, 25, LAST, "nmethod", "_scopes_data_offset"),
    FIELD(nm_scopes_pcs, 8, LAST, "nmethod", "_scopes_pcs_offset"),
    FIELD(nm_dependencies, 8, 21, "nmethod", "_dependencies_offset"),
    FIELD(nm_immutable_data, 25, LAST, "nmethod", "_immutable_data"),
    FIELD(nm_entry_point, 8, 21, "nmethod", "_verified_entry_point"),
    FIELD(nm_entry_offset, 25, LAST, "nmethod", "_verified_entry_offset"),
    FIELD(nm_deopt_offset, 8, 8, "nmethod", "_deoptimize_offset"),
    FIELD(nm_deopt_mh_offset, 8, 8, "nmethod", "_deoptimize_mh_offset"),
    FIELD(nm_deopt_begin, 11, 21, "CompiledMethod", "_deopt_handler_begin"),
    FIELD(nm_deopt_mh_begin, 11, 21, "CompiledMethod", "_deopt_mh_handler_begin"),
    MAYBE(nm_deopt_offset, 25, 26, "nmethod", "_deopt_handler_offset"),
    MAYBE(nm_deopt_mh_offset, 25, 26, "nmethod", "_deopt_mh_handler_offset"),
    MAYBE(nm_deopt_offset, 26, LAST, "nmethod", "_deopt_handler_entry_offset"),
    FIELD(pc_offset, 8, LAST, "PcDesc", "_pc_offset"),
    FIELD(pc_scope, 8, LAST, "PcDesc", "_scope_decode_offset"),
    FIELD(method_const, 8, LAST, "Method", "_constMethod"),
    FIELD(method_access, 8, LAST, "Method", "_access_flags"),
    FIELD(const_pool, 8, LAST, "ConstMethod", "_constants"),
    FIELD(const_code_size, 8, LAST, "ConstMethod", "_code_size"),
    FIELD(const_size, 8, LAST, "ConstMethod", "_constMethod_size"),
    FIELD(const_name, 8, LAST, "ConstMethod", "_name_index"),
    FIELD(const_signature, 8, LAST, "ConstMethod", "_signature_index"),
    FIELD(const_idnum, 8, LAST, "ConstMethod", "_method_idnum"),
    FIELD(const_flags, 8, 17, "ConstMethod", "_flags"),
    FIELD(const_flags, 21, LAST, "ConstMethod", "_flags._flags"),
    FIELD(pool_holder, 8, LAST, "ConstantPool", "_pool_holder"),
    FIELD(pool_length, 8, LAST, "ConstantPool", "_length"),
    MAYBE(pool_tags, 8, LAST, "ConstantPool", "_tags"),
    FIELD(pool_source_file, 17, LAST, "ConstantPool", "_source_file_name_index"),
    FIELD(class_source_file, 8, 11, "InstanceKlass", "_source_file_name_index"),
    MAYBE(class_interfaces, 8, LAST, "InstanceKlass", "_local_interfaces"),
    FIELD(klass_name, 8, LAST, "Klass", "_name"),
    MAYBE(klass_layout_helper, 25, LAST, "Klass", "_layout_helper"),
    MAYBE(cont_entry_parent, 25, LAST, "ContinuationEntry", "_parent"),
    FIELD(klass_loader_data, 8, 8, "InstanceKlass", "_class_loader_data"),
    FIELD(klass_loader_data, 11, LAST, "Klass", "_class_loader_data"),
    FIELD(loader_data_loader, 8, LAST, "ClassLoaderData", "_class_loader"),
    FIELD(symbol_length, 8, LAST, "Symbol", "_length"),
    FIELD(symbol_body, 8, LAST, "Symbol", "_body"),
    FIELD(queue_buffer, 8, LAST, "StubQueue", "_stub_buffer"),
    FIELD(queue_limit, 8, LAST, "StubQueue", "_buffer_limit"),
    FIELD(queue_begin, 8, LAST, "StubQueue", "_queue_begin"),
    FIELD(queue_end, 8, LAST, "StubQueue", "_queue_end"),
    FIELD(codelet_size, 8, LAST, "InterpreterCodelet", "_size"),
    FIELD(flag_name, 8, 8, "Flag", "_name"),
    FIELD(flag_name, 11, LAST, "JVMFlag", "_name"),
    FIELD(flag_address, 8, 8, "Flag", "_addr"),
    FIELD(flag_address, 11, LAST, "JVMFlag", "_addr"),
    FIELD(codelet_description, 8, LAST, "InterpreterCodelet", "_description"),
};

static const struct row sizes[] = {
    FIELD(sizeof_thread, 8, LAST, "JavaThread", ""),
    FIELD(sizeof_block, 8, LAST, "HeapBlock", ""),
    FIELD(sizeof_const_method, 8, LAST, "ConstMethod", ""),
    FIELD(sizeof_pool, 8, LAST, "ConstantPool", ""),
    FIELD(sizeof_pc_desc, 8, LAST, "PcDesc", ""),
    FIELD(sizeof_cont_entry, 25, LAST, "ContinuationEntry", ""),
    FIELD(sizeof_flag, 8, 8, "Flag", ""),
    FIELD(sizeof_flag, 11, LAST, "JVMFlag", ""),
    FIELD(sizeof_codelet, 8, LAST, "InterpreterCodelet", ""),
};

static const struct row statics[] = {
    FIELD(code_heap, 8, 8, "CodeCache", "_heap"),
    FIELD(code_heaps, 11, LAST, "CodeCache", "_heaps"),
    FIELD(interpreter_code, 8, LAST, "AbstractInterpreter", "_code"),
    FIELD(call_stub_return, 8, LAST, "StubRoutines", "_call_stub_return_address"),
    FIELD(cont_return_pc, 25, LAST, "ContinuationEntry", "_return_pc"),
    FIELD(flags, 8, 8, "Flag", "flags"),
    FIELD(flags, 11, LAST, "JVMFlag", "flags"),
    FIELD(flag_count, 8, 8, "Flag", "numFlags"),
    FIELD(flag_count, 11, LAST, "JVMFlag", "numFlags"),
    FIELD(major_version, 8, LAST, "Abstract_VM_Version", "_vm_major_version"),
    MAYBE(perf_start, 8, LAST, "PerfMemory", "_start"),
    MAYBE(oop_base, 25, LAST, "CompressedOops", "_base"),
    MAYBE(oop_shift, 25, LAST, "CompressedOops", "_shift"),
    MAYBE(collected_heap, 25, LAST, "Universe", "_collectedHeap"),
    MAYBE(class_klass_offset, 25, LAST, "java_lang_Class", "_klass_offset"),
};

static const struct row constants[] = {
    FIELD(has_line_numbers, 8, 17, "ConstMethod::_has_linenumber_table", ""),
    FIELD(has_line_numbers, 21, LAST, "ConstMethodFlags::_misc_has_linenumber_table", ""),
};
/* clang-format on */

#define ROWS(table) table, ARRAY_SIZE(table)

/* Which rows an entry of the VM's tables can match, by the kind of the entry. */
static const struct group {
    const struct row *rows;
    size_t count;
    const char *what;
    bool address; /* the member has 64 bits */
} groups[] = {
    [TABLE_FIELD] = {ROWS(fields), "offset", false},
    [TABLE_STATIC] = {ROWS(statics), "static", true},
    [TABLE_TYPE] = {ROWS(sizes), "size", false},
    [TABLE_CONSTANT] = {ROWS(constants), "constant", false},
};

enum { ROWS_MAX = 128 };

struct search {
    int64_t found[ARRAY_SIZE(groups)][ROWS_MAX];
    bool seen[ARRAY_SIZE(groups)][ROWS_MAX];
};

static int match(void *context, const struct table_entry *entry)
{
    struct search *s = context;
    const struct group *g = &groups[entry->kind];
    for (size_t i = 0; i < g->count; i++)
        if (g->rows[i].field[0] == entry->name[0] && g->rows[i].type[0] == entry->type[0] &&
            strcmp(g->rows[i].type, entry->type) == 0 &&
            strcmp(g->rows[i].field, entry->name) == 0) {
            s->found[entry->kind][i] = entry->value;
            s->seen[entry->kind][i] = true;
        }
    return 0;
}

static bool applies(const struct row *row, int version)
{
    return version >= row->first && version <= row->last;
}

static void store(struct hotspot_layout *layout, const struct group *g, const struct row *row,
                  int64_t value)
{
    void *member = (char *)layout + row->member;
    if (g->address)
        *(uint64_t *)member = (uint64_t)value;
    else
        *(int32_t *)member = (int32_t)value;
}

/*
 * HotSpot's own major version is 25 in JDK 8; the code cache with one heap distinguishes it from
 * JDK 25.
 */
static int find_version(const struct hotspot_image *image, const struct search *s, int *ret)
{
    size_t heap = 0, major = 0;
    while (strcmp(statics[heap].field, "_heap") != 0)
        heap++;
    while (strcmp(statics[major].field, "_vm_major_version") != 0)
        major++;
    if (s->seen[TABLE_STATIC][heap]) {
        *ret = 8;
        return 0;
    }
    uint32_t version = 0;
    int r = s->seen[TABLE_STATIC][major]
                ? image_u32(image, (uint64_t)s->found[TABLE_STATIC][major], &version)
                : -ENOENT;
    if (r == 0)
        *ret = (int)version;
    return r;
}

static int fill(struct hotspot_layout *layout, const struct search *s, char *why, size_t size)
{
    for (size_t k = 0; k < ARRAY_SIZE(groups); k++) {
        const struct group *g = &groups[k];
        for (size_t i = 0; i < g->count; i++)
            if (!g->address)
                store(layout, g, &g->rows[i], LAYOUT_NONE);
        for (size_t i = 0; i < g->count; i++) {
            const struct row *row = &g->rows[i];
            if (!applies(row, layout->version) || (row->optional && !s->seen[k][i]))
                continue;
            int64_t value = s->found[k][i];
            const char *colons = row->field[0] ? "::" : "";
            if (!s->seen[k][i]) {
                snprintf(why, size, "JDK %d without %s%s%s", layout->version, row->type, colons,
                         row->field);
                return -ENOTSUP;
            }
            if (g->address ? value == 0
                           : value < 0 || (k != TABLE_CONSTANT && value > row->limit)) {
                snprintf(why, size, "%s%s%s at %lld", row->type, colons, row->field,
                         (long long)value);
                return -ENOTSUP;
            }
            store(layout, g, row, value);
        }
    }
    return 0;
}

/*
 * Conditions that hold for any valid offsets. The sentence of the one that fails becomes the
 * reason.
 */
static const char *contradiction(const struct hotspot_layout *l)
{
    if (l->thread_anchor + l->anchor_pc + 8 > l->sizeof_thread ||
        l->thread_stack_size + 8 > l->sizeof_thread)
        return "a JavaThread smaller than its fields";
    if (l->anchor_fp != LAYOUT_NONE && l->anchor_fp == l->anchor_sp)
        return "a JavaFrameAnchor whose fields overlap";
    if (l->sizeof_pc_desc < 12 || l->pc_offset != 0 || l->pc_scope != 4)
        return "another PcDesc";
    if (l->sizeof_block < 8 || l->sizeof_block % 8 || l->block_used >= l->sizeof_block)
        return "another HeapBlock";
    if (l->nm_deopt_begin == LAYOUT_NONE && l->nm_deopt_offset == LAYOUT_NONE)
        return "no deoptimization handler";
    if (l->method_const % 8 || l->const_pool % 8 || l->pool_holder % 8 || l->klass_name % 8 ||
        l->nm_method % 8)
        return "pointers that are not aligned";
    return NULL;
}

static int read_layout(const struct hotspot_image *image, struct hotspot_layout *ret, char *why,
                       size_t size)
{
    struct search s = {0};
    struct hotspot_layout layout = {0};
    int r = hotspot_tables_visit(image, match, &s);
    if (r < 0) {
        snprintf(why, size,
                 r == -ENOENT ? "this VM exports no structures"
                              : "the VM's structures cannot be read");
        return -ENOTSUP;
    }
    if (find_version(image, &s, &layout.version) < 0) {
        snprintf(why, size, "this VM does not report its version");
        return -ENOTSUP;
    }
    bool known = false;
    for (size_t i = 0; i < ARRAY_SIZE(known_versions); i++)
        known = known || known_versions[i] == layout.version;
    if (!known) {
        snprintf(why, size, "the walker does not support JDK %d", layout.version);
        return -ENOTSUP;
    }
    if (fill(&layout, &s, why, size) < 0)
        return -ENOTSUP;
    const char *wrong = contradiction(&layout);
    if (wrong) {
        snprintf(why, size, "JDK %d with %s", layout.version, wrong);
        return -ENOTSUP;
    }
    layout.unsigned5_base = layout.version >= 20 ? 1 : 0;
    layout.interpreter_bcp = layout.version == 8 ? 7 : 8;
    *ret = layout;
    return 0;
}

int hotspot_layout_read_flags(const struct hotspot_image *image, struct hotspot_layout *ret)
{
    static const uint16_t members[] = {MEMBER(flag_name), MEMBER(flag_address), MEMBER(sizeof_flag),
                                       MEMBER(flags), MEMBER(flag_count)};
    struct search s = {0};
    struct hotspot_layout layout = {0};
    size_t found = 0;
    if (hotspot_tables_visit(image, match, &s) < 0)
        return -ENOTSUP;
    for (size_t k = 0; k < ARRAY_SIZE(groups); k++)
        for (size_t i = 0; i < groups[k].count; i++)
            for (size_t m = 0; m < ARRAY_SIZE(members); m++)
                if (groups[k].rows[i].member == members[m] && s.seen[k][i]) {
                    store(&layout, &groups[k], &groups[k].rows[i], s.found[k][i]);
                    found++;
                }
    if (found != ARRAY_SIZE(members) || layout.sizeof_flag <= 0)
        return -ENOTSUP;
    *ret = layout;
    return 0;
}

/* The layout that was read last, and the address of the tables from which it was read. */
static struct {
    pthread_mutex_t lock;
    uint64_t tables;
    struct hotspot_layout layout;
} last_read = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t tables_of(const struct hotspot_image *image)
{
    uint64_t at = 0;
    return image->in_place && image->symbol(image->context, "gHotSpotVMStructs", &at) == 0 ? at : 0;
}

int hotspot_layout_read(const struct hotspot_image *image, struct hotspot_layout *ret, char *why,
                        size_t size)
{
    uint64_t tables = tables_of(image);
    pthread_mutex_lock(&last_read.lock);
    bool is_known = tables && last_read.tables == tables;
    if (is_known)
        *ret = last_read.layout;
    pthread_mutex_unlock(&last_read.lock);
    int r = is_known ? 0 : read_layout(image, ret, why, size);
    if (r < 0 || is_known || !tables)
        return r;
    pthread_mutex_lock(&last_read.lock);
    last_read.tables = tables;
    last_read.layout = *ret;
    pthread_mutex_unlock(&last_read.lock);
    return 0;
}

void hotspot_layout_visit(const struct hotspot_layout *layout,
                          void (*visit)(void *context, const char *what, const char *type,
                                        const char *field, int64_t value),
                          void *context)
{
    for (size_t k = 0; k < ARRAY_SIZE(groups); k++)
        for (size_t i = 0; i < groups[k].count; i++) {
            const struct row *row = &groups[k].rows[i];
            const void *member = (const char *)layout + row->member;
            int64_t value =
                groups[k].address ? (int64_t) * (const uint64_t *)member : *(const int32_t *)member;
            if (applies(row, layout->version) &&
                !(row->optional && value == (groups[k].address ? 0 : LAYOUT_NONE)))
                visit(context, groups[k].what, row->type, row->field, value);
        }
}

uint64_t hotspot_flag_address(const struct hotspot_layout *layout,
                              const struct hotspot_image *image, const char *name)
{
    uint64_t table, count, text, address;
    char copy[64];
    if (image_u64(image, layout->flags, &table) < 0 ||
        image_u64(image, layout->flag_count, &count) < 0)
        return 0;
    for (uint64_t i = 0; i < MIN(count, FLAGS_MAX); i++) {
        uint64_t flag = table + i * (uint64_t)layout->sizeof_flag;
        if (image_u64(image, flag + (uint64_t)layout->flag_name, &text) < 0)
            continue;
        const char *found = image_text(image, text, copy, sizeof(copy));
        if (found && strcmp(found, name) == 0)
            return image_u64(image, flag + (uint64_t)layout->flag_address, &address) == 0 ? address
                                                                                          : 0;
    }
    return 0;
}

bool hotspot_flag(const struct hotspot_layout *layout, const struct hotspot_image *image,
                  const char *name)
{
    uint64_t address = hotspot_flag_address(layout, image, name);
    uint8_t value;
    return address && image->read(image->context, address, &value, 1) == 0 && value != 0;
}

bool hotspot_flag_is_given(const struct hotspot_layout *layout, const struct hotspot_image *image,
                           const char *name)
{
    uint64_t address = hotspot_flag_address(layout, image, name), text;
    return address && image_u64(image, address, &text) == 0 && text;
}

const char *const hotspot_archive_texts[] = {"AOTCacheOutput", "AOTConfiguration",
                                             "ArchiveClassesAtExit", NULL};
const char *const hotspot_archive_switches[] = {"DumpSharedSpaces", "DynamicDumpSharedSpaces",
                                                "RecordDynamicDumpInfo", NULL};

const char *hotspot_archive_flag(const struct hotspot_layout *layout,
                                 const struct hotspot_image *image)
{
    for (const char *const *n = hotspot_archive_texts; *n; n++)
        if (hotspot_flag_is_given(layout, image, *n))
            return *n;
    for (const char *const *n = hotspot_archive_switches; *n; n++)
        if (hotspot_flag(layout, image, *n))
            return *n;
    return NULL;
}
