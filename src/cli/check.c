/* SPDX-License-Identifier: Apache-2.0 */
/* check: says what will work with a VM, and what is missing for the rest. */
#include "proto/check.h"

#include "base/json.h"
#include "cli/commands.h"
#include "cli/target.h"

static const char *const verdicts[] = {
    [CHECK_YES] = "yes", [CHECK_PERHAPS] = "perhaps", [CHECK_NO] = "no"};

static void print_table(const struct vm *vm, const struct check checks[CHECKS])
{
    printf("%d: %.100s (JDK %s)\n", vm->pid, vm->command ? vm->command : "?",
           vm->version ? vm->version : "?");
    for (size_t i = 0; i < CHECKS; i++)
        printf("  %-14s %s%s%s\n", checks[i].name, verdicts[checks[i].verdict],
               checks[i].why ? ": " : "", checks[i].why ? checks[i].why : "");
}

static void print_json(const struct vm *vm, const struct check checks[CHECKS])
{
    _cleanup_(buf_release) struct buf out = BUF(1 << 20);
    struct json j = {&out, false};
    json_begin_object(&j);
    json_key_u64(&j, "pid", (uint64_t)vm->pid);
    json_key_string(&j, "version", vm->version);
    json_key_array(&j, "checks");
    for (size_t i = 0; i < CHECKS; i++) {
        json_begin_object(&j);
        json_key_string(&j, "name", checks[i].name);
        json_key_string(&j, "verdict", verdicts[checks[i].verdict]);
        json_key_string(&j, "why", checks[i].why);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
    puts(buf_str(&out));
}

static int cmd_check(const struct command *self, int argc, char **argv)
{
    struct json_only options = {0};
    struct operands operands;
    struct check checks[CHECKS];
    int status;
    if (!args_parse(self, ARGS({NULL, &options}), argc, argv, &operands, &status))
        return status;
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    status = target_find(&vm, operands.list[0]);
    if (status)
        return status;
    int r = check_vm(&vm, checks);
    if (r < 0)
        return complain_errno(operands.list[0], "cannot check it", r);
    (options.json ? print_json : print_table)(&vm, checks);
    bool records = true;
    for (size_t i = 0; i < CHECKS; i++)
        records &= strcmp(checks[i].name, "record") != 0 || checks[i].verdict == CHECK_YES;
    check_release(checks);
    return records ? 0 : 1;
}

const struct command command_check = {
    .name = "check",
    .run = cmd_check,
    .operands = "PID",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "check what works with a VM, and what the rest would need",
    .related = "attach list status",
    .description =
        "Use it before a recording in production, or when *jvmscope attach* fails.\n\n"
        "Checks whether the VM can be attached to and recorded, whether a heap dump can be taken, "
        "whether CPU samples will have kernel frames, and whether *top* works. For each of these "
        "that will not work, it names the missing permission or setting. No request is sent to the "
        "VM, and it is not stopped; the files that *attach* would create in its folders are "
        "created and removed. "
        "Exits with 0 when the VM can be recorded.",
    .examples = "  jvmscope check 4711\n",
    .sets = json_only_sets,
};
