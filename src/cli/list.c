/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/builtin.h"
#include "cli/report.h"
#include "proto/vm.h"

#include <pwd.h>

struct list {
    bool json;
};

static const struct arg list_args[] = {
    {"--json", 0, ARG_FLAG, offsetof(struct list, json), NULL, "print JSON"},
    {0},
};

static const struct arg_set list_set = {"What is shown", list_args};
const struct arg_set *const list_sets[] = {&list_set, NULL};

enum { COMMAND_SHOWN = 100 };

static const char *user_name(uid_t uid, char text[32])
{
    struct passwd *p = getpwuid(uid);
    snprintf(text, 32, "%u", uid);
    return p ? p->pw_name : text;
}

static void print_table(const struct vm_list *l)
{
    printf("    PID  USER       VERSION             PROGRAM\n");
    for (size_t i = 0; i < l->vms.len; i++) {
        const struct vm *vm = &l->vms.data[i];
        char uid[32];
        printf("%7d  %-9s  %-18s  ", vm->pid, user_name(vm->uid, uid), vm->version ? vm->version : "?");
        const char *command = vm->command ? vm->command : "?";
        print_text(stdout, (struct str){command, strnlen(command, COMMAND_SHOWN)});
        printf("%s%s%s\n", strlen(command) > COMMAND_SHOWN ? "..." : "", vm->other_root ? "  (container)" : "",
               vm->attach_disabled ? "  (attach disabled)" : "");
    }
}

static void print_json(const struct vm_list *l)
{
    _cleanup_(buf_release) struct buf out = BUF(1 << 28);
    struct json j = {&out, false};
    json_array(&j);
    for (size_t i = 0; i < l->vms.len; i++) {
        const struct vm *vm = &l->vms.data[i];
        json_object(&j);
        json_key(&j, "pid");
        json_i64(&j, vm->pid);
        json_key(&j, "inner_pid");
        json_i64(&j, vm->inner_pid);
        json_key(&j, "uid");
        json_u64(&j, vm->uid);
        json_key(&j, "version");
        json_string(&j, vm->version);
        json_key(&j, "command");
        json_string(&j, vm->command);
        json_key(&j, "container");
        json_bool(&j, vm->other_root);
        json_key(&j, "attachable");
        json_bool(&j, !vm->attach_disabled && !vm->openj9);
        json_object_end(&j);
    }
    json_array_end(&j);
    puts(buf_str(&out));
}

int cmd_list(const struct command *self, int argc, char **argv)
{
    struct list options = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, (void *[]){&options}, argc, argv, &operands, &status))
        return status;
    struct vm_list vms;
    int r = vm_list_read(&vms);
    if (r < 0)
        return complain_errno("list", "cannot read /proc", r);
    if (options.json)
        print_json(&vms);
    else
        print_table(&vms);
    vm_list_release(&vms);
    return 0;
}
