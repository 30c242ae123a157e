/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the VM keeps the fields that a stack walk reads. All values come from the VM's own
 * tables. What each version must have is listed in layout.c, and a VM that deviates is refused with
 * a reason.
 */
#pragma once

#include "hotspot/image.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAYOUT_NONE = -1 }; /* an offset with this value: this version has no such field */

struct hotspot_layout {
    int version; /* feature release: 8, 11, 17 ... */

    /* Offsets of the structures' fields, in bytes. */
    int32_t thread_anchor, thread_stack_base, thread_stack_size, thread_state, thread_cont_entry;
    /*
     * of the heap: the number of collections that have begun; a byte that is set during a
     * collection
     */
    int32_t collections, collecting;
    int32_t anchor_sp, anchor_pc, anchor_fp, wrapper_anchor;
    int32_t heap_memory, heap_segmap, heap_log2_segment, space_low, space_low_boundary,
        space_high_boundary;
    int32_t array_len, array_data; /* GrowableArray */
    int32_t block_used;
    int32_t blob_name, blob_size, blob_code_begin, blob_code_offset, blob_code_end,
        blob_data_offset;
    int32_t blob_frame_complete, blob_frame_size, blob_mutable_data, blob_relocation_size;
    int32_t nm_method, nm_comp_level, nm_compile_id, nm_entry_bci, nm_orig_pc, nm_metadata,
        nm_scopes_data, nm_scopes_data_begin;
    int32_t nm_scopes_pcs, nm_dependencies, nm_immutable_data, nm_entry_point, nm_entry_offset;
    int32_t nm_deopt_offset, nm_deopt_mh_offset, nm_deopt_begin, nm_deopt_mh_begin;
    int32_t pc_offset, pc_scope;
    int32_t method_const, method_access, const_pool, const_code_size, const_size, const_name,
        const_signature, const_idnum;
    int32_t const_flags, pool_holder, pool_length, pool_tags, pool_source_file, class_interfaces,
        klass_name, class_source_file;
    int32_t klass_loader_data, klass_layout_helper, loader_data_loader, cont_entry_parent;
    int32_t symbol_length, symbol_body;
    int32_t flag_name, flag_address; /* a VM flag (JVMFlag) */
    int32_t queue_buffer, queue_limit, queue_begin, queue_end, codelet_size, codelet_description;

    /* Sizes of the structures, in bytes. */
    int32_t sizeof_thread, sizeof_block, sizeof_const_method, sizeof_pool, sizeof_pc_desc,
        sizeof_cont_entry, sizeof_codelet, sizeof_flag;

    /* Addresses of static fields; 0 when this version does not have the field. */
    uint64_t code_heap, code_heaps, interpreter_code, call_stub_return, cont_return_pc,
        major_version, flags, flag_count;
    uint64_t perf_start, oop_base, oop_shift, class_klass_offset, collected_heap;

    /* Constants. */
    int32_t has_line_numbers;

    /* Values that the tables do not contain. */
    /* what is subtracted from each byte of a compressed number (JDK-8292758) */
    uint8_t unsigned5_base;
    /* words below the frame pointer at which the interpreter keeps its bytecode pointer */
    uint8_t interpreter_bcp;
};

/*
 * Reads and checks the layout. Returns 0, or -ENOTSUP with the reason in why[size]: the VM is not
 * HotSpot, or a version that the walker does not know, or its tables are incomplete or
 * contradictory.
 */
int hotspot_layout_read(const struct hotspot_image *image, struct hotspot_layout *ret, char *why,
                        size_t size) must_check;

/*
 * Reads only what hotspot_flag_address and the functions after it need, from a VM of any version.
 * Returns 0, or -ENOTSUP when the VM's tables lack some of it.
 */
int hotspot_layout_read_flags(const struct hotspot_image *image,
                              struct hotspot_layout *ret) must_check;

/* Returns the address of the value of a VM flag ("CheckJNICalls"); 0 when there is no such flag. */
uint64_t hotspot_flag_address(const struct hotspot_layout *layout,
                              const struct hotspot_image *image, const char *name);
/* Returns the value of a boolean flag of the VM, and false also when there is no such flag. */
bool hotspot_flag(const struct hotspot_layout *layout, const struct hotspot_image *image,
                  const char *name);
/* Returns whether a flag whose value is a text has one; false also when there is no such flag. */
bool hotspot_flag_is_given(const struct hotspot_layout *layout, const struct hotspot_image *image,
                           const char *name);

/*
 * The flags by which a VM makes an archive of its classes for later starts: those whose value is
 * the name of a file, and switches. Both arrays end with NULL.
 */
extern const char *const hotspot_archive_texts[], *const hotspot_archive_switches[];
/*
 * Returns the name of the first of these flags that is set, or NULL. With such a flag the VM leaves
 * classes that were changed out of the archive. If every archive needs one of these classes, such
 * as java.lang.Thread, the VM writes no archive, and JDK 25 and later exit with 1. Recording the
 * profile of a cache (-XX:AOTMode=record) is such a run as well.
 */
const char *hotspot_archive_flag(const struct hotspot_layout *layout,
                                 const struct hotspot_image *image);

/*
 * Visits each member that is set, in the form that tools/layouts prints: "offset
 * JavaThread::_anchor 656".
 */
void hotspot_layout_visit(const struct hotspot_layout *layout,
                          void (*visit)(void *context, const char *what, const char *type,
                                        const char *field, int64_t value),
                          void *context);
