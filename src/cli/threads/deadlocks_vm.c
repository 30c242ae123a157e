/* SPDX-License-Identifier: Apache-2.0 */
/* jvmscope threads deadlocks PID: shows the agent's answer to `deadlocks`. */
#include "cli/threads/deadlocks_vm.h"
#include "cli/target.h"
#include "options/control.h"

#include <json-c/json.h>
#include <stdio.h>

static const char *text(json_object *o, const char *key)
{
    const char *s = json_object_get_string(json_object_object_get(o, key));
    return s ? s : "?";
}

static void print_cycle(json_object *cycle)
{
    size_t n = json_object_array_length(cycle);
    printf("deadlock of %zu threads:\n", n);
    for (size_t i = 0; i < n; i++) {
        json_object *one = json_object_array_get_idx(cycle, i),
                    *frames = json_object_object_get(one, "frames");
        printf("  %s waits for %s owned by %s\n", text(one, "thread"), text(one, "waits_for"),
               text(one, "owned_by"));
        for (size_t k = 0; frames && k < json_object_array_length(frames); k++)
            printf("      at %s\n", json_object_get_string(json_object_array_get_idx(frames, k)));
    }
}

int deadlocks_of_vm(const char *pid, bool as_json)
{
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    int status = target_open(&vm, pid);
    if (status)
        return status;
    _cleanup_(buf_release) struct buf answer = BUF(CONTROL_ANSWER_MAX);
    status = target_message(&vm, "threads deadlocks", "control=inspect,deadlocks", true, &answer);
    if (status)
        return status;
    _cleanup_free_ char *found = agent_answer_value(buf_str(&answer), "json", 0);
    json_object *o = found ? json_tokener_parse(found) : NULL;
    json_object *list = json_object_object_get(o, "deadlocks");
    if (!json_object_is_type(list, json_type_array)) {
        json_object_put(o);
        return complain(pid, "threads deadlocks", "the agent's answer is not understood");
    }
    size_t n = json_object_array_length(list);
    for (size_t i = 0; i < n; i++) {
        json_object *one = json_object_array_get_idx(list, i);
        if (as_json)
            json_object_object_add(one, "looked_at_virtual", json_object_new_boolean(false));
        else
            print_cycle(json_object_object_get(one, "cycle"));
    }
    if (as_json)
        puts(json_object_to_json_string_ext(list, JSON_C_TO_STRING_PLAIN |
                                                      JSON_C_TO_STRING_NOSLASHESCAPE));
    else if (n == 0)
        puts("no deadlock of platform threads (run --deadlocks reports those of virtual threads)");
    else
        puts("only platform threads were examined (run --deadlocks reports deadlocks of virtual "
             "threads)");
    json_object_put(o);
    return 0;
}
