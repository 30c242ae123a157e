/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inspect/inspect.h"

#include "agent/common/fault.h"
#include "agent/stacks/names.h"

#include "base/vec.h"

#include <errno.h>
#include <stdatomic.h>

static int inspect_free(struct inspection *i);

/* The command itself answers a question without a function; it needs no agent for that. */
static const struct question questions[] = {
    {"threads", "", inspect_threads},
    {"groups", "", inspect_groups},
    {"stack", "THREAD", inspect_stack},
    {"classes", "[PATTERN]", inspect_classes},
    {"class", "NAME", inspect_class},
    {"statics", "NAME", inspect_statics},
    {"modules", "", inspect_modules},
    {"instances", "CLASS", inspect_instances},
    {"object", "NUMBER", inspect_object},
    {"free", "NUMBER|all", inspect_free},
    {"properties", "", NULL},
    {"vm", "", inspect_vm},
    {"deadlocks", "", inspect_deadlocks},
};

/*
 * The environment in which objects are numbered. The first question creates it; it exists as long
 * as there are numbers.
 */
static jvmtiEnv *numbers;
static jvmtiCapabilities capabilities;
static atomic_uint_fast64_t collections;
/* By number: how many collections had run when it was assigned. */
static VEC(uint64_t) given;

static void JNICALL on_collection(jvmtiEnv *ti)
{
    atomic_fetch_add(&collections, 1);
}

int inspect_open(const jvmtiCapabilities *more, const jvmtiEventCallbacks *callbacks,
                 struct buf *why)
{
    static const jvmtiCapabilities wanted = {
        .can_tag_objects = 1,
        .can_get_bytecodes = 1,
        .can_get_synthetic_attribute = 1,
        .can_get_monitor_info = 1,
        .can_get_current_contended_monitor = 1,
        .can_get_source_file_name = 1,
        .can_get_line_numbers = 1,
        .can_access_local_variables = 1,
        .can_get_thread_cpu_time = 1,
        .can_generate_compiled_method_load_events = 1,
        .can_generate_garbage_collection_events = 1,
    };
    jvmtiEnv *ti = numbers;
    if (fault_here())
        return -ENOTSUP;
    if (!ti && (*vm.java)->GetEnv(vm.java, (void **)&ti, JVMTI_VERSION_1_2) != JNI_OK) {
        buf_string(why, "the VM provides no further JVM TI environment");
        return -ENOTSUP;
    }
    jvmtiCapabilities potential = {0};
    (*ti)->GetPotentialCapabilities(ti, &potential);
    uint64_t bits[2], also[2] = {0}, can[2];
    memcpy(bits, &wanted, sizeof(bits));
    memcpy(can, &potential, sizeof(can));
    if (more)
        memcpy(also, more, sizeof(also));
    for (int k = 0; k < 2; k++)
        bits[k] = (bits[k] | also[k]) & can[k];
    jvmtiCapabilities add;
    memcpy(&add, bits, sizeof(bits));
    if (!add.can_tag_objects || (*ti)->AddCapabilities(ti, &add) != JVMTI_ERROR_NONE ||
        (*ti)->GetCapabilities(ti, &capabilities) != JVMTI_ERROR_NONE) {
        if (!numbers)
            (*ti)->DisposeEnvironment(ti);
        buf_string(why, "the VM cannot tag objects for this agent");
        return -ENOTSUP;
    }
    jvmtiEventCallbacks all = callbacks ? *callbacks : (jvmtiEventCallbacks){0};
    all.GarbageCollectionFinish = on_collection;
    if (!numbers || callbacks)
        (*ti)->SetEventCallbacks(ti, &all, sizeof(all));
    if (capabilities.can_generate_garbage_collection_events)
        (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_GARBAGE_COLLECTION_FINISH,
                                        NULL);
    numbers = ti;
    return 0;
}

struct inspection inspect_with(JNIEnv *jni, struct json *out, struct buf *why)
{
    return (struct inspection){
        .ti = numbers,
        .have = capabilities,
        .jni = jni,
        .operand = "",
        .out = out,
        .why = why,
        .finder = {.ti = numbers, .jni = jni, .sees_monitors = capabilities.can_get_monitor_info}};
}

jlong inspect_object_number(struct inspection *i, jobject o)
{
    jlong tag = 0;
    if (!o || (*i->ti)->GetTag(i->ti, o, &tag) != JVMTI_ERROR_NONE || tag)
        return tag;
    if (given.len == 0 && vec_push(&given, 0) < 0)
        return 0;
    tag = (jlong)given.len;
    if (vec_push(&given, atomic_load(&collections)) < 0 ||
        (*i->ti)->SetTag(i->ti, o, tag) != JVMTI_ERROR_NONE)
        return 0;
    return tag;
}

jobject inspect_object_of_number(struct inspection *i, jlong number)
{
    jint n = 0;
    jobject *found = NULL, o = NULL;
    if (number > 0 &&
        (*i->ti)->GetObjectsWithTags(i->ti, 1, &number, &n, &found, NULL) == JVMTI_ERROR_NONE &&
        n > 0)
        o = found[0];
    vm_free(found);
    return o;
}

uint64_t inspect_object_age(jlong number)
{
    return (uint64_t)number < given.len ? atomic_load(&collections) - given.data[number] : 0;
}

struct forgetting {
    jlong number;     /* 0: all */
    uint64_t objects; /* which lost their numbers */
};

static jint JNICALL untag(jlong class_tag, jlong size, jlong *tag, jint length, void *context)
{
    struct forgetting *f = context;
    if (!f->number || *tag == f->number) {
        *tag = 0;
        f->objects++;
    }
    return JVMTI_VISIT_OBJECTS;
}

static int inspect_free(struct inspection *i)
{
    char *end;
    long long number = strtoll(i->operand, &end, 10);
    if (strcmp(i->operand, "all") != 0 && (*end || number <= 0)) {
        buf_printf(i->why, "free: an object's number, or all");
        return -EINVAL;
    }
    bool all = strcmp(i->operand, "all") == 0;
    if (!all && (uint64_t)number >= given.len) {
        buf_printf(i->why, "%s: no object was given this number", i->operand);
        return -ESRCH;
    }
    struct forgetting forgetting = {.number = all ? 0 : number};
    const jvmtiHeapCallbacks callbacks = {.heap_iteration_callback = untag};
    (*i->ti)->IterateThroughHeap(i->ti, JVMTI_HEAP_FILTER_UNTAGGED, NULL, &callbacks, &forgetting);
    if (!all && !forgetting.objects) {
        buf_printf(i->why,
                   "%s: no object has this number any more: it was freed, or its object died",
                   i->operand);
        return -ESRCH;
    }
    json_key_string(i->out, "freed", i->operand);
    json_key_i64(i->out, "objects", (int64_t)forgetting.objects);
    return 0;
}

/* Returns whether a question has an operand where it needs one, and none where it takes none. */
static bool has_operand(const struct question *q, const char *operand, struct buf *why)
{
    bool is = *operand ? *q->operand : !*q->operand || *q->operand == '[';
    if (!is)
        buf_printf(why, "%s: takes %s", q->name, *q->operand ? q->operand : "nothing");
    return is;
}

int inspect_answer(JNIEnv *jni, const char *question, struct buf *out, struct buf *why)
{
    /* for lines, and to find the method that a lambda implements */
    static const jvmtiCapabilities likes = {
        .can_get_source_file_name = 1, .can_get_line_numbers = 1, .can_get_constant_pool = 1};
    jvmtiCapabilities missing;
    size_t n = strcspn(question, " ");
    const char *operand = question + n + strspn(question + n, " ");
    int r = vm_need(&likes, &missing) < 0 ? -ENOTSUP : 0;
    if (r < 0)
        buf_string(why, "the VM does not say which of its functions can be used");
    if (r == 0 && !numbers)
        r = inspect_open(NULL, NULL, why);
    for (size_t q = 0; r == 0 && q < ARRAY_SIZE(questions); q++) {
        if (strncmp(questions[q].name, question, n) != 0 || questions[q].name[n] ||
            !questions[q].answer)
            continue;
        if (!has_operand(&questions[q], operand, why))
            return -EINVAL;
        if ((*jni)->PushLocalFrame(jni, 64) < 0) {
            vm_clear_exception(jni);
            return -ENOMEM;
        }
        struct json j = {.out = out};
        struct inspection i = inspect_with(jni, &j, why);
        i.operand = operand;
        unsigned hold = names_hold();
        json_begin_object(&j);
        r = questions[q].answer(&i);
        json_end_object(&j);
        class_finder_release(&i.finder);
        names_unhold(hold);
        vm_clear_exception(jni);
        (*jni)->PopLocalFrame(jni, NULL);
        return r == 0 ? buf_error(out) : r;
    }
    if (r == 0) {
        buf_printf(why, "%.*s: unknown question; allowed:", (int)n, question);
        for (size_t q = 0; q < ARRAY_SIZE(questions); q++)
            buf_printf(why, " %s", questions[q].name);
        r = -EINVAL;
    }
    return r;
}
