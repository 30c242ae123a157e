/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses where counters are inserted. `new`, and instructions that create one-dimensional arrays,
 * are counted in front of the instruction, where the length is on the stack. A probe after them,
 * which may make a call, would keep the JIT from merging the allocation with the first stores and
 * from omitting zeroing that is overwritten at once. If the class of an object then fails to
 * initialize, the count is corrected (failed.c). Arrays of 65,536 elements and more are counted
 * after the instruction, once it is known that there was enough memory. Counting does not wait for
 * the constructor, because an object whose constructor throws was allocated too. Calls of methods
 * that are native or that the JIT replaces with intrinsics are counted after the call, by their
 * result. No probe receives the new object, so the JIT may still eliminate its allocation.
 *
 * The class is pushed as a constant: a class that cannot be resolved throws before anything is
 * counted, and the first stack samples of a `new` determine whether an object will be created, and
 * its size. Class files before version 49 have no class constants, so their probes follow the
 * instruction.
 *
 * Arrays of constant length are counted like instances, with short probes: resource bundles have
 * hundreds of them in one method, which must stay below the JIT's size limit.
 */
#include "agent/capture/alloc/alloc.h"
#include "agent/vm/dump.h"
#include "base/cursor.h"

#include <errno.h>
#include <string.h>

#define PROBE "java/lang/JvmscopeSites"

enum { CLASS_CONSTANTS = 49, NESTED = 32 };

/*
 * Calls whose result is counted at the call site. last_version is the last JDK for which this is
 * done (0: all); owner NULL stands for any array class.
 */
static const struct {
    const char *owner, *name, *descriptor;
    int last_version;
} calls[] = {
    {NULL, "clone", "()Ljava/lang/Object;"},
    {"java/lang/Object", "clone", "()Ljava/lang/Object;"},
    {"java/util/Arrays", "copyOf", "([Ljava/lang/Object;ILjava/lang/Class;)[Ljava/lang/Object;"},
    {"java/util/Arrays", "copyOfRange",
     "([Ljava/lang/Object;IILjava/lang/Class;)[Ljava/lang/Object;"},
    {"java/lang/reflect/Array", "newInstance", "(Ljava/lang/Class;I)Ljava/lang/Object;"},
    {"jdk/internal/misc/Unsafe", "allocateInstance", "(Ljava/lang/Class;)Ljava/lang/Object;"},
    {"jdk/internal/misc/Unsafe", "allocateUninitializedArray",
     "(Ljava/lang/Class;I)Ljava/lang/Object;"},
    /*
     * From JDK 9 on this is an ordinary method that method handles reach from code without probes,
     * so it is counted inside its own body.
     */
    {"sun/misc/Unsafe", "allocateInstance", "(Ljava/lang/Class;)Ljava/lang/Object;", 8},
};

static bool is_call(size_t row, struct str owner, struct str name, struct str descriptor)
{
    return (!calls[row].last_version || vm.version <= calls[row].last_version) &&
           str_is(name, calls[row].name) && str_is(descriptor, calls[row].descriptor) &&
           (calls[row].owner ? str_is(owner, calls[row].owner) : owner.len && owner.data[0] == '[');
}

/*
 * Returns whether the JIT may replace calls of a method, so that its body does not run: the methods
 * above that are not native.
 */
static bool is_replaced(struct str class_name, struct str method, struct str descriptor)
{
    for (size_t i = 2; i < ARRAY_SIZE(calls); i++)
        if (is_call(i, class_name, method, descriptor))
            return true;
    /* The replaced methods call this one. */
    return (str_is(class_name, "java/lang/reflect/Array") && str_is(method, "newArray"));
}

/* A `new` whose constructor call has not been found yet. */
struct opened {
    uint32_t pc;
    uint16_t class;
    /*
     * the reference was duplicated at once and has not been moved since, so that it is on top of
     * the stack after the constructor call
     */
    bool clear;
    int64_t number;
};

struct editing {
    const struct class_file *file;
    struct edit *e;
    struct buf code;
    int64_t number; /* number of the next point */
    bool add;       /* the points still have to be described */
    struct opened opened[NESTED];
    unsigned n_opened;
    uint8_t *targets; /* a bit for each pc, set if it is the target of a jump */
};

static void mark_targets(struct editing *s, const struct insn *i)
{
    unsigned n = edit_edges(s->e, i->pc);
    for (unsigned edge = 0; edge < n; edge++) {
        uint32_t pc = edit_edge_target(s->e, i->pc, edge);
        s->targets[pc / 8] |= (uint8_t)(1u << pc % 8);
    }
}

/*
 * Returns the length of the array that an instruction creates, if the preceding instruction pushes
 * it as a constant and no jump leads in between; otherwise -1.
 */
static int constant_length(const struct editing *s, const struct insn *before, const struct insn *i)
{
    if ((i->op != OP_NEWARRAY && i->op != OP_ANEWARRAY) || s->targets[i->pc / 8] & 1u << i->pc % 8)
        return -1;
    if (before->op >= OP_ICONST_0 && before->op < OP_LCONST_0)
        return before->op - OP_ICONST_0;
    if (before->op == OP_BIPUSH)
        return (int8_t)before->at[1];
    return before->op == OP_SIPUSH ? (int16_t)(before->at[1] << 8 | before->at[2]) : -1;
}

/*
 * Returns whether an invokedynamic creates a capturing lambda, which is one object per execution.
 * Before JDK 15 the VM's anonymous class allocates it, in code that cannot be instrumented; later
 * versions use DirectMethodHandle and Unsafe.allocateInstance.
 */
static bool makes_lambda(const struct class_file *c, const struct insn *i)
{
    struct class_member m, maker;
    uint16_t index = insn_constant(i);
    if (vm.version >= 15 || !class_member(c, index, &m) || m.descriptor.len < 2 ||
        m.descriptor.data[1] == ')')
        return false;
    struct cursor in = cursor_of(c->bytes + c->attributes_start, c->len - c->attributes_start);
    for (unsigned n = cursor_be16(&in); n && !in.failed; n--) {
        struct str name = class_utf8(c, cursor_be16(&in));
        struct cursor methods = cursor_sub(&in, cursor_be32(&in));
        if (!str_is(name, "BootstrapMethods"))
            continue;
        unsigned wanted = class_be16(c, c->pool.data[index] + 1), count = cursor_be16(&methods);
        for (unsigned k = 0; k < count && !methods.failed; k++) {
            uint16_t handle = cursor_be16(&methods);
            cursor_skip(&methods, 2 * (size_t)cursor_be16(&methods));
            if (k == wanted)
                return class_tag(c, handle) == CONSTANT_METHOD_HANDLE &&
                       class_member(c, class_be16(c, c->pool.data[handle] + 2), &maker) &&
                       str_is(maker.owner, "java/lang/invoke/LambdaMetafactory");
        }
    }
    return false;
}

/*
 * Returns the number of counters that an instruction needs, or 0 if it allocates nothing that is
 * counted here.
 */
static unsigned counters_of(const struct editing *s, const struct insn *before,
                            const struct insn *i)
{
    const struct class_file *c = s->file;
    struct class_member m;
    switch (i->op) {
    case OP_NEW:
        return 1;
    case OP_NEWARRAY:
    case OP_ANEWARRAY:
        return constant_length(s, before, i) >= 0 ? 1 : 2;
    case OP_MULTIANEWARRAY:
        return 1;
    case OP_INVOKEDYNAMIC:
        return makes_lambda(c, i) ? 2 : 0;
    case OP_INVOKEVIRTUAL:
    case OP_INVOKESPECIAL:
    case OP_INVOKESTATIC:
        if (!class_member(c, insn_constant(i), &m))
            return 0;
        for (size_t k = 0; k < ARRAY_SIZE(calls); k++)
            if (is_call(k, m.owner, m.name, m.descriptor))
                return 2;
        return 0;
    default:
        return 0;
    }
}

static int call_probe(struct editing *s, const char *name, const char *descriptor)
{
    return code_call_static(s->e->rewrite, &s->code, PROBE, name, descriptor);
}

static int put_number(struct editing *s, unsigned counters)
{
    int r = code_int(s->e->rewrite, &s->code, (int32_t)s->number);
    s->number += counters;
    return r;
}

/* Offers the object on top of the stack for tracking. */
static int put_follow(struct editing *s, int64_t number)
{
    code_op(&s->code, OP_DUP);
    int r = code_int(s->e->rewrite, &s->code, (int32_t)number);
    alloc_point((uint32_t)number)->offered = true;
    return r < 0 ? r
                 : call_probe(s, alloc_follow == FOLLOW_ALL ? "follow" : "constructed",
                              "(Ljava/lang/Object;I)V");
}

static void describe(struct editing *s, enum alloc_kind kind, const char *descriptor, size_t len)
{
    if (s->add)
        alloc_point_set((uint32_t)s->number, kind, descriptor, len);
}

/*
 * Describes a point by the signature of a class constant, "Lp/C;" or "[I", with `prefix` in front.
 */
static void describe_class(struct editing *s, enum alloc_kind kind, const char *prefix,
                           uint16_t index)
{
    _cleanup_(buf_release) struct buf d = BUF(70000);
    struct str name = class_name_at(s->file, index);
    bool array = name.len && name.data[0] == '[';
    buf_printf(&d, "%s%s%.*s%s", prefix, array ? "" : "L", (int)name.len, name.data,
               array ? "" : ";");
    describe(s, kind, buf_str(&d), d.len);
}

/* Pushes the class operand of the instruction, or null. */
static void put_class(struct editing *s, const struct insn *i)
{
    if (s->file->major >= CLASS_CONSTANTS)
        code_ref(&s->code, OP_LDC_W, insn_constant(i));
    else
        code_op(&s->code, OP_ACONST_NULL);
}

static int at_new(struct editing *s, const struct insn *i)
{
    describe_class(s, ALLOC_NEW, "", insn_constant(i));
    put_class(s, i);
    int r = put_number(s, 1);
    r = r < 0 ? r : call_probe(s, "made", "(Ljava/lang/Class;I)V");
    return r < 0 ? r
                 : edit_insert(s->e, s->file->major >= CLASS_CONSTANTS ? EDIT_BEFORE : EDIT_AFTER,
                               i->pc, 0, &s->code, 2);
}

/*
 * Returns the suffix of the probes array1 ... array8, array, large1 ... large8 and large: the bytes
 * of an element, or "" for references.
 */
static const char *size_of_element(char element)
{
    switch (element) {
    case 'Z':
    case 'B':
        return "1";
    case 'C':
    case 'S':
        return "2";
    case 'I':
    case 'F':
        return "4";
    case 'J':
    case 'D':
        return "8";
    default:
        return "";
    }
}

/* After the instruction, counts the array that the preceding probe left uncounted. */
static int put_large(struct editing *s, const char *element, int64_t number)
{
    char name[16];
    snprintf(name, sizeof(name), "large%s", element);
    buf_clear(&s->code);
    code_op(&s->code, OP_DUP);
    code_op(&s->code, OP_ARRAYLENGTH);
    int r = code_int(s->e->rewrite, &s->code, (int32_t)number);
    r = r < 0 ? r : call_probe(s, name, "(II)V");
    return r < 0 ? r : put_follow(s, number);
}

static uint32_t array_size(char element, unsigned length)
{
    const struct hprof_shapes *shapes = vm_shapes();
    unsigned each =
        element == 'L' ? shapes->reference : (unsigned)(*size_of_element(element) - '0');
    unsigned type = each == 1        ? HPROF_BYTE
                    : each == 2      ? HPROF_SHORT
                    : element == 'L' ? HPROF_OBJECT
                    : each == 4      ? HPROF_INT
                                     : HPROF_LONG;
    return (shapes->header[type] + length * each + shapes->alignment - 1) &
           ~(shapes->alignment - 1);
}

/*
 * Instruments an array of constant length. A single probe after the instruction counts it and
 * offers it for tracking.
 */
static int at_fixed_array(struct editing *s, const struct insn *i, char element, unsigned length)
{
    const char *name = alloc_follow == FOLLOW_ALL ? "fixedFollowed" : "fixedConstructed";
    if (s->add)
        alloc_point((uint32_t)s->number)->size = array_size(element, length);
    alloc_point((uint32_t)s->number)->offered = true;
    code_op(&s->code, OP_DUP);
    int r = put_number(s, 1);
    r = r < 0 ? r : call_probe(s, name, "(Ljava/lang/Object;I)V");
    return r < 0 ? r : edit_insert(s->e, EDIT_AFTER, i->pc, 0, &s->code, 2);
}

static int at_array(struct editing *s, const struct insn *before_this, const struct insn *i)
{
    /* JVMS, newarray: types 4 to 11. */
    static const char *const types[] = {"[Z", "[C", "[F", "[D", "[B", "[S", "[I", "[J"};
    int length = constant_length(s, before_this, i);
    enum alloc_kind kind = length >= 0 ? ALLOC_NEW : ALLOC_ARRAY;
    char element = 'L';
    if (i->op == OP_NEWARRAY) {
        unsigned t = i->at[1] - 4u;
        if (t >= ARRAY_SIZE(types))
            return -EBADMSG;
        element = types[t][1];
        describe(s, kind, types[t], 2);
    } else {
        describe_class(s, kind, "[", insn_constant(i));
    }
    if (length >= 0)
        return at_fixed_array(s, i, element, (unsigned)length);
    char name[16];
    snprintf(name, sizeof(name), "array%s", size_of_element(element));
    bool before = i->op == OP_NEWARRAY || s->file->major >= CLASS_CONSTANTS;
    int64_t number = s->number;
    code_op(&s->code, OP_DUP);
    if (!before)
        code_op(&s->code, OP_ARRAYLENGTH);
    if (element == 'L')
        put_class(s, i);
    int r = put_number(s, 2);
    r = r < 0 ? r : call_probe(s, name, element == 'L' ? "(ILjava/lang/Class;I)V" : "(II)V");
    r = r < 0 ? r : edit_insert(s->e, before ? EDIT_BEFORE : EDIT_AFTER, i->pc, 0, &s->code, 3);
    r = r < 0 ? r : put_large(s, size_of_element(element), number);
    return r < 0 ? r : edit_insert(s->e, EDIT_AFTER, i->pc, 0, &s->code, 2);
}

static int at_multi(struct editing *s, const struct insn *i)
{
    describe_class(s, ALLOC_MULTI, "", insn_constant(i));
    code_op(&s->code, OP_DUP);
    int r = put_number(s, 1);
    r = r < 0 ? r : code_int(s->e->rewrite, &s->code, i->at[3]);
    r = r < 0 ? r : call_probe(s, "multi", "(Ljava/lang/Object;II)V");
    return r < 0 ? r : edit_insert(s->e, EDIT_AFTER, i->pc, 0, &s->code, 3);
}

static int at_call(struct editing *s, const struct insn *i)
{
    struct class_member m;
    bool instance = i->op != OP_INVOKEDYNAMIC && class_member(s->file, insn_constant(i), &m) &&
                    str_is(m.name, "allocateInstance");
    int r = instance ? call_probe(s, "expect", "()V") : 0;
    r = r < 0 || !instance ? r : edit_insert(s->e, EDIT_BEFORE, i->pc, 0, &s->code, 0);
    if (r < 0)
        return r;
    buf_clear(&s->code);
    describe(s, ALLOC_OBJECT, "[B", 2);
    alloc_point((uint32_t)s->number)->offered = true;
    code_op(&s->code, OP_DUP);
    r = put_number(s, 2);
    r = r < 0 ? r : call_probe(s, instance ? "instance" : "object", "(Ljava/lang/Object;I)V");
    return r < 0 ? r : edit_insert(s->e, EDIT_AFTER, i->pc, 0, &s->code, 2);
}

static int at_instruction(struct editing *s, const struct insn *before, const struct insn *i)
{
    switch (i->op) {
    case OP_NEW:
        return at_new(s, i);
    case OP_NEWARRAY:
    case OP_ANEWARRAY:
        return at_array(s, before, i);
    case OP_MULTIANEWARRAY:
        return at_multi(s, i);
    default:
        return at_call(s, i);
    }
}

/* Runs after the constructor call of the innermost open `new`. */
static int at_constructor(struct editing *s, const struct insn *i)
{
    struct class_member m;
    const struct opened *o = s->n_opened ? &s->opened[s->n_opened - 1] : NULL;
    struct str class = o ? class_name_at(s->file, o->class) : (struct str){0};
    if (!o || !class_member(s->file, insn_constant(i), &m) || !str_is(m.name, "<init>") ||
        m.owner.len != class.len || memcmp(m.owner.data, class.data, class.len) != 0)
        return 0;
    s->n_opened--;
    if (!o->clear)
        return 0;
    buf_clear(&s->code);
    int r = put_follow(s, o->number);
    return r < 0 ? r : edit_insert(s->e, EDIT_AFTER, i->pc, 0, &s->code, 2);
}

/*
 * Pairs each `new` with its constructor call by their nesting in code order, which is how compilers
 * emit them. In any other code the object is counted, but not tracked.
 */
static int pair_constructors(struct editing *s, const struct insn *i, int64_t number)
{
    struct opened *o = s->n_opened ? &s->opened[s->n_opened - 1] : NULL;
    if (i->op == OP_NEW) {
        if (s->n_opened == NESTED)
            s->n_opened = 0;
        s->opened[s->n_opened++] = (struct opened){i->pc, insn_constant(i), false, number};
    } else if (i->op == OP_DUP && o && i->pc == o->pc + 3) {
        o->clear = true;
    } else if (i->op == OP_INVOKESPECIAL) {
        return at_constructor(s, i);
    } else if ((i->op >= OP_DUP_X1 && i->op <= OP_SWAP) || i->op == OP_ASTORE ||
               (i->op > OP_ASTORE && i->op <= OP_ASTORE_3)) {
        for (unsigned k = 0; k < s->n_opened; k++)
            s->opened[k].clear = false;
    }
    return 0;
}

int alloc_edit(const struct instrument_class *c, struct edit *e)
{
    uint8_t targets[65536 / 8];
    struct editing s = {.file = c->file, .e = e, .code = BUF(256), .targets = targets};
    struct str name = class_utf8(c->file, e->method->name),
               descriptor = class_utf8(c->file, e->method->descriptor);
    unsigned n = 0;
    if (is_replaced(c->name, name, descriptor))
        return 0;
    memset(targets, 0, e->code_len / 8 + 1);
    for (struct insn i = {0}; edit_next(e, &i);)
        mark_targets(&s, &i);
    for (struct insn i = {0}, before = {0}; edit_next(e, &i); before = i)
        n += counters_of(&s, &before, &i);
    if (n == 0)
        return 0;
    s.number = alloc_points_add(c->name, e, n, &s.add);
    int r = s.number < 0 ? (int)s.number : 0;
    for (struct insn i = {0}, before = {0}; r >= 0 && edit_next(e, &i); before = i) {
        int64_t number = s.number;
        buf_clear(&s.code);
        if (counters_of(&s, &before, &i))
            r = at_instruction(&s, &before, &i);
        if (r >= 0)
            r = pair_constructors(&s, &i, number);
    }
    buf_release(&s.code);
    return r < 0 ? r : 1;
}
