/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control: threads and classes of a VM that allows it. The agent implements the verbs
 * (agent/control).
 */
#include "cli/builtin.h"
#include "cli/target.h"
#include "proto/vm_files.h"

#include <limits.h>
#include <string.h>

struct control_vm {
    bool json;
};

static const struct arg control_args[] = {
    {"--json", 0, ARG_FLAG, offsetof(struct control_vm, json), NULL, "print JSON"},
    {0},
};

static const struct arg_set control_set = {"What is shown", control_args};
const struct arg_set *const control_sets[] = {&control_set, NULL};

/* Finds the absolute name of a class file, which the VM must see under the same name. */
static bool find_file(const struct vm *vm, const char *name, char *to)
{
    if (!realpath(name, to)) {
        complain(name, "no such file", NULL);
        return false;
    }
    if (!vm_sees(vm, to)) {
        complain(to, "the VM does not see this file", "put it where both see it");
        return false;
    }
    return true;
}

int cmd_control(const struct command *self, int argc, char **argv)
{
    struct control_vm options = {0};
    struct operands operands;
    char file[PATH_MAX];
    int status;
    if (!args_parse(self, (void *[]){&options}, argc, argv, &operands, &status))
        return status;
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    status = target_open(&vm, operands.list[0]);
    if (status)
        return status;
    if (operands.count == 3 && strcmp(operands.list[1], "redefine") == 0) {
        if (!find_file(&vm, operands.list[2], file))
            return 1;
        operands.list[2] = file;
    }
    _cleanup_(buf_release) struct buf message = BUF(4096);
    buf_string(&message, "control=control,");
    for (int i = 1; i < operands.count; i++)
        buf_printf(&message, "%s%s", i > 1 ? "\t" : "", operands.list[i]);
    return target_show(&vm, "control", buf_str(&message), false, options.json);
}
