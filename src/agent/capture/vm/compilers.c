/* SPDX-License-Identifier: Apache-2.0 */
/* Records compilations, discarded code and uncommon traps from the lines of the VM's log. */
#include "agent/capture/vm/vm.h"

#include "base/hash.h"

#include <string.h>

enum { NAME_MAX_LEN = 400, TRAPS = 256 };

/*
 * Traps of one place since the last flush. A method that is compiled badly may cause 100,000 per
 * second.
 */
static struct trap {
    uint64_t key, count, first_ns;
    int32_t bci;
    uint32_t compile_id, level;
    char method[NAME_MAX_LEN], reason[64], action[64];
} traps[TRAPS];

static int used;

void compilers_reset(void)
{
    if (used) /* clearing it touches many pages */
        memset(traps, 0, sizeof(traps));
    used = 0;
}

/* Copies "java.lang.String::hashCode" as "java.lang.String.hashCode", the form of other events. */
static void copy_method(char *to, size_t size, struct log_text t)
{
    log_text_copy(to, size, t);
    char *colons = strstr(to, "::");
    if (colons) {
        *colons = '.';
        memmove(colons + 1, colons + 2, strlen(colons + 2) + 1);
    }
    char *signature = strchr(to, '(');
    if (signature)
        *signature = 0;
}

void compilers_line(const struct log_line *line)
{
    struct log_compile c;
    struct jfr_event e;
    char method[NAME_MAX_LEN], why[64];
    if (!log_compile_read(line->text, &c) || c.native)
        return;
    copy_method(method, sizeof(method), c.method);
    log_text_copy(why, sizeof(why), c.why);
    if (!jfr_begin(vm_activity.jfr,
                   c.not_entrant ? vm_activity.discarded_type : vm_activity.compiled_type,
                   sizeof(method) + sizeof(why) + 64, &e))
        return;
    jfr_put_time(&e, line->ns);
    jfr_put_int(&e, (int32_t)c.id);
    jfr_put_string(&e, method);
    jfr_put_int(&e, (int32_t)c.level);
    jfr_put_byte(&e, c.osr);
    if (c.not_entrant)
        jfr_put_string(&e, why[0] ? why : NULL);
    else
        jfr_put_long(&e, (int64_t)c.bytes);
    jfr_commit(&e);
}

static uint64_t key_of(const struct log_trap *t)
{
    uint64_t parts[] = {hash_bytes(t->method.data, t->method.len),
                        hash_bytes(t->reason.data, t->reason.len), (uint64_t)t->bci, t->compile_id};
    uint64_t key = hash_bytes(parts, sizeof(parts));
    return key ? key : 1;
}

static void put_trap(const struct trap *t)
{
    struct jfr_event e;
    if (!jfr_begin(vm_activity.jfr, vm_activity.trap_type, sizeof(*t) + 64, &e))
        return;
    jfr_put_time(&e, t->first_ns);
    jfr_put_int(&e, (int32_t)t->compile_id);
    jfr_put_string(&e, t->method);
    jfr_put_int(&e, (int32_t)t->level);
    jfr_put_int(&e, t->bci);
    jfr_put_string(&e, t->reason);
    jfr_put_string(&e, t->action[0] ? t->action : NULL);
    jfr_put_long(&e, (int64_t)t->count);
    jfr_commit(&e);
}

void compilers_trap(const struct log_line *line)
{
    struct log_trap t;
    if (!log_trap_read(line->text, &t))
        return;
    uint64_t key = key_of(&t);
    size_t at = key % TRAPS;
    while (traps[at].key && traps[at].key != key)
        at = (at + 1) % TRAPS;
    if (!traps[at].key) {
        traps[at] = (struct trap){.key = key,
                                  .first_ns = line->ns,
                                  .bci = t.bci,
                                  .compile_id = t.compile_id,
                                  .level = t.level};
        copy_method(traps[at].method, sizeof(traps[at].method), t.method);
        log_text_copy(traps[at].reason, sizeof(traps[at].reason), t.reason);
        log_text_copy(traps[at].action, sizeof(traps[at].action), t.action);
        used++;
    }
    traps[at].count++;
    if (used > TRAPS / 2)
        compilers_flush();
}

void compilers_flush(void)
{
    if (!used)
        return;
    for (int i = 0; i < TRAPS; i++)
        if (traps[i].key)
            put_trap(&traps[i]);
    compilers_reset();
}
