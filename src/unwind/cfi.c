/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/cfi.h"

#include <string.h>

enum {
    DW_EH_PE_pcrel_sdata4 = 0x1b,
    DW_EH_PE_datarel_sdata4 = 0x3b,
    DW_EH_PE_udata4 = 0x03,
    /* limits the bytes of one program, and with them the time in a signal handler */
    PROGRAM_MAX = 1 << 16,
    SAVED_STATES = 4,
};

/* A reader of guarded bytes. */
struct reader {
    const struct memory *m;
    uint64_t at, end;
    bool failed;
    uint64_t word_at, word; /* the aligned word read last */
};

static uint8_t next8(struct reader *r)
{
    uint64_t aligned = r->at & ~UINT64_C(7);
    if (r->at >= r->end) {
        r->failed = true;
        return 0;
    }
    if (aligned != r->word_at) {
        if (!load_u64(r->m, aligned, &r->word)) {
            r->failed = true;
            return 0;
        }
        r->word_at = aligned;
    }
    return (uint8_t)(r->word >> (r->at++ & 7) * 8);
}

static uint64_t next_bytes(struct reader *r, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++)
        v |= (uint64_t)next8(r) << i * 8;
    return v;
}

static uint64_t next_uleb(struct reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t b = next8(r);
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return v;
    }
    r->failed = true;
    return 0;
}

static int64_t next_sleb(struct reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64;) {
        uint8_t b = next8(r);
        v |= (uint64_t)(b & 0x7f) << shift;
        shift += 7;
        if (!(b & 0x80))
            return (int64_t)(shift < 64 && (b & 0x40) ? v | -(UINT64_C(1) << shift) : v);
    }
    r->failed = true;
    return 0;
}

static struct reader reader_at(const struct memory *m, uint64_t at, uint64_t len)
{
    return (struct reader){.m = m, .at = at, .end = at + len, .word_at = UINT64_MAX};
}

/*
 * Returns the address of the frame description that covers pc, found in the sorted table of
 * .eh_frame_hdr; 0 when there is none.
 */
static uint64_t find_fde(const struct memory *m, const struct module *module, uint64_t pc)
{
    uint64_t header = module->eh_frame_hdr;
    uint32_t head, count, entry[2];
    if (!header || module->eh_frame_size < 12 || !load_u32(m, header, &head) ||
        !load_u32(m, header + 8, &count))
        return 0;
    /* version 1, count as udata4, table of pairs relative to the header */
    if ((head & 0xff) != 1 || (head >> 16 & 0xff) != DW_EH_PE_udata4 ||
        (head >> 24) != DW_EH_PE_datarel_sdata4 || count > (module->eh_frame_size - 12) / 8)
        return 0;
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (!load_u32(m, header + 12 + 8 * (uint64_t)middle, &entry[0]))
            return 0;
        if (header + (uint64_t)(int64_t)(int32_t)entry[0] <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || !load_u32(m, header + 12 + 8 * (uint64_t)(low - 1) + 4, &entry[1]))
        return 0;
    return header + (uint64_t)(int64_t)(int32_t)entry[1];
}

enum { RULE_SAME, RULE_OFFSET, RULE_UNDEFINED, RULE_OTHER };

struct rule {
    uint8_t kind;
    int64_t offset;
};

struct row {
    uint64_t cfa_register;
    int64_t cfa_offset;
    bool cfa_expression;
    struct rule fp, ra;
};

struct program {
    const struct arch *arch;
    struct row row, initial, saved[SAVED_STATES];
    unsigned depth;
    /* pc: where the current row begins. The row that covers `target` is needed. */
    uint64_t code_align, pc, target;
    int64_t data_align;
    bool signal, reached;
};

static struct rule *rule_of(struct program *p, uint64_t reg)
{
    return reg == (uint64_t)p->arch->dwarf_fp   ? &p->row.fp
           : reg == (uint64_t)p->arch->dwarf_ra ? &p->row.ra
                                                : NULL;
}

static void set_rule(struct program *p, uint64_t reg, uint8_t kind, int64_t offset)
{
    struct rule *rule = rule_of(p, reg);
    if (rule)
        *rule = (struct rule){kind, offset};
}

static void restore_rule(struct program *p, uint64_t reg)
{
    struct rule *rule = rule_of(p, reg);
    if (rule)
        *rule = rule == &p->row.fp ? p->initial.fp : p->initial.ra;
}

/*
 * Converts an offset in units of the data alignment factor. A damaged table may hold any value, so
 * the product may wrap.
 */
static int64_t factored(const struct program *p, int64_t offset)
{
    return (int64_t)((uint64_t)offset * (uint64_t)p->data_align);
}

static void advance(struct program *p, uint64_t delta)
{
    p->pc += delta * p->code_align;
    if (p->pc > p->target)
        p->reached = true;
}

static void set_cfa(struct program *p, uint64_t reg, int64_t offset)
{
    p->row.cfa_register = reg;
    p->row.cfa_offset = offset;
    p->row.cfa_expression = false;
}

/* Executes an instruction whose opcode takes the whole byte. */
static void execute_extended(struct program *p, struct reader *r, uint8_t op)
{
    uint64_t reg;
    switch (op) {
    case 0x00: /* nop */
        break;
    case 0x01: /* set_loc, never with the encodings in use */
        r->failed = true;
        break;
    case 0x02: /* advance_loc1, 2, 4 */
        advance(p, next_bytes(r, 1));
        break;
    case 0x03:
        advance(p, next_bytes(r, 2));
        break;
    case 0x04:
        advance(p, next_bytes(r, 4));
        break;
    case 0x05: /* offset_extended */
        reg = next_uleb(r);
        set_rule(p, reg, RULE_OFFSET, factored(p, (int64_t)next_uleb(r)));
        break;
    case 0x06: /* restore_extended */
        restore_rule(p, next_uleb(r));
        break;
    case 0x07: /* undefined */
        set_rule(p, next_uleb(r), RULE_UNDEFINED, 0);
        break;
    case 0x08: /* same_value */
        set_rule(p, next_uleb(r), RULE_SAME, 0);
        break;
    case 0x09: /* register */
        set_rule(p, next_uleb(r), RULE_OTHER, 0);
        (void)next_uleb(r);
        break;
    case 0x0a: /* remember_state */
        if (p->depth < SAVED_STATES)
            p->saved[p->depth++] = p->row;
        else
            r->failed = true;
        break;
    case 0x0b: /* restore_state */
        if (p->depth > 0)
            p->row = p->saved[--p->depth];
        else
            r->failed = true;
        break;
    case 0x0c: /* def_cfa */
        reg = next_uleb(r);
        set_cfa(p, reg, (int64_t)next_uleb(r));
        break;
    case 0x0d: /* def_cfa_register */
        set_cfa(p, next_uleb(r), p->row.cfa_offset);
        break;
    case 0x0e: /* def_cfa_offset */
        set_cfa(p, p->row.cfa_register, (int64_t)next_uleb(r));
        break;
    case 0x0f: /* def_cfa_expression */
        p->row.cfa_expression = true;
        r->at += next_uleb(r);
        break;
    case 0x10: /* expression, val_expression */
    case 0x16:
        set_rule(p, next_uleb(r), RULE_OTHER, 0);
        r->at += next_uleb(r);
        break;
    case 0x11: /* offset_extended_sf */
        reg = next_uleb(r);
        set_rule(p, reg, RULE_OFFSET, factored(p, next_sleb(r)));
        break;
    case 0x12: /* def_cfa_sf */
        reg = next_uleb(r);
        set_cfa(p, reg, factored(p, next_sleb(r)));
        break;
    case 0x13: /* def_cfa_offset_sf */
        set_cfa(p, p->row.cfa_register, factored(p, next_sleb(r)));
        break;
    case 0x14: /* val_offset, val_offset_sf */
    case 0x15:
        set_rule(p, next_uleb(r), RULE_OTHER, 0);
        (void)next_uleb(r);
        break;
    case 0x2d: /* AArch64_negate_ra_state: the mask removes the signature */
        break;
    case 0x2e: /* GNU_args_size */
        (void)next_uleb(r);
        break;
    default:
        r->failed = true;
    }
}

static void execute(struct program *p, struct reader *r)
{
    while (!r->failed && !p->reached && r->at < r->end) {
        uint8_t op = next8(r), low = op & 0x3f;
        switch (op >> 6) {
        case 1:
            advance(p, low);
            break;
        case 2:
            set_rule(p, low, RULE_OFFSET, factored(p, (int64_t)next_uleb(r)));
            break;
        case 3:
            restore_rule(p, low);
            break;
        default:
            execute_extended(p, r, op);
        }
    }
}

/*
 * Parses the common information entry: augmentation, alignment factors, and the program with which
 * each of its descriptions begins.
 */
static bool read_cie(struct program *p, const struct memory *m, uint64_t cie, bool *ret_augmented)
{
    struct reader r = reader_at(m, cie, 4);
    uint64_t len = next_bytes(&r, 4);
    if (r.failed || len < 8 || len > PROGRAM_MAX)
        return false;
    r = reader_at(m, cie + 4, len);
    (void)next_bytes(&r, 4);
    uint8_t version = next8(&r);
    char text[8] = "";
    unsigned n = 0;
    while (n < sizeof(text) && (text[n] = (char)next8(&r)) != 0)
        n++;
    if (n == sizeof(text) || (version != 1 && version != 3))
        return false;
    p->code_align = next_uleb(&r);
    p->data_align = next_sleb(&r);
    uint64_t ra = version == 1 ? next8(&r) : next_uleb(&r);
    uint64_t program = r.at;
    *ret_augmented = text[0] == 'z';
    if (text[0] == 'z') {
        uint64_t size = next_uleb(&r);
        program = r.at + size;
        for (const char *c = text + 1; *c && !r.failed; c++) {
            if (*c == 'R' && next8(&r) != DW_EH_PE_pcrel_sdata4)
                return false;
            if (*c == 'L')
                (void)next8(&r);
            if (*c == 'P')
                r.at += (next8(&r) & 7) == DW_EH_PE_udata4 ? 4 : 8;
            p->signal = p->signal || *c == 'S';
        }
    } else if (text[0]) {
        return false;
    }
    r.at = program;
    execute(p, &r);
    p->initial = p->row;
    return !r.failed && ra == (uint64_t)p->arch->dwarf_ra;
}

static bool rule_of_row(const struct program *p, struct cfi_rule *ret)
{
    const struct row *row = &p->row;
    struct cfi_rule rule = {.base = CFI_UNKNOWN, .offset = (int32_t)row->cfa_offset};
    if (p->signal)
        rule.base = CFI_SIGNAL;
    else if (row->ra.kind == RULE_UNDEFINED)
        rule.base = CFI_END;
    else if (row->cfa_expression)
        rule.base = p->arch->return_on_stack ? CFI_PLT : CFI_UNKNOWN;
    else if (row->cfa_register == (uint64_t)p->arch->dwarf_sp)
        rule.base = CFI_SP;
    else if (row->cfa_register == (uint64_t)p->arch->dwarf_fp)
        rule.base = CFI_FP;
    if (rule.base == CFI_UNKNOWN ||
        ((row->fp.kind == RULE_OTHER || row->ra.kind == RULE_OTHER) && !p->signal))
        return false;
    rule.fp_saved = row->fp.kind == RULE_OFFSET;
    rule.fp_offset = (int32_t)row->fp.offset;
    rule.ra_saved = row->ra.kind == RULE_OFFSET;
    rule.ra_offset = (int32_t)row->ra.offset;
    *ret = rule;
    return true;
}

bool cfi_find(const struct arch *arch, const struct memory *m, const struct module *module,
              uint64_t pc, struct cfi_rule *ret)
{
    uint64_t fde = find_fde(m, module, pc);
    if (!fde)
        return false;
    struct reader r = reader_at(m, fde, 16);
    uint64_t len = next_bytes(&r, 4), at = r.at, back = next_bytes(&r, 4);
    if (r.failed || len < 12 || len > PROGRAM_MAX || back == 0)
        return false;
    struct program p = {.arch = arch, .target = pc};
    bool augmented;
    if (!read_cie(&p, m, at - back, &augmented))
        return false;
    r = reader_at(m, at + 4, len - 4);
    uint64_t field = r.at, begin = field + (uint64_t)(int64_t)(int32_t)next_bytes(&r, 4),
             size = next_bytes(&r, 4);
    if (r.failed || pc - begin >= size)
        return false;
    if (augmented)
        r.at += next_uleb(&r);
    p.pc = begin;
    p.reached = false;
    execute(&p, &r);
    return !r.failed && rule_of_row(&p, ret);
}
