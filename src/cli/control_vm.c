/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control: threads and classes of a VM that allows it. The agent implements the verbs
 * (agent/control).
 */
#include "cli/commands.h"
#include "cli/target.h"
#include "proto/vm_files.h"

#include <limits.h>
#include <string.h>

/* Finds the absolute name of a class file, which the VM must see under the same name. */
static bool find_file(const struct vm *vm, const char *name, char *to)
{
    if (!realpath(name, to)) {
        complain(name, "no such file", NULL);
        return false;
    }
    if (!vm_sees(vm, to)) {
        complain(to, "the VM cannot see this file", "move it to a folder that the VM can see");
        return false;
    }
    return true;
}

static int cmd_control(const struct command *self, int argc, char **argv)
{
    struct json_only options = {0};
    struct operands operands;
    char file[PATH_MAX];
    int status;
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    if (!target_begin(&vm, self, &options, argc, argv, &operands, &status))
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
    return target_show(&vm, "control", buf_str(&message), false, options.json, NULL);
}

static const struct operand_word control_words[] = {
    {"suspend THREAD", "hold a thread, given by its name or the number that inspect shows"},
    {"resume THREAD", "let a held thread continue"},
    {"interrupt THREAD", "interrupt a thread"},
    {"stop THREAD [EXCEPTION]", "throw an exception in a thread (ThreadDeath)"},
    {"pop THREAD", "make the innermost call of a held thread start again"},
    {"return THREAD [VALUE]", "make the innermost call of a held thread return at once"},
    {"set THREAD DEPTH NAME VALUE",
     "change a local of a frame; 0 is the innermost, and #3:I is slot 3 as int"},
    {"break PLACE", "hold each thread that reaches a method or a line"},
    {"clear PLACE", "remove a breakpoint"},
    {"step THREAD [into|over|out]", "let a held thread run to the next line"},
    {"redefine FILE", "replace a class with the one in a class file"},
    {"verbose gc|class|jni on|off", "make the VM print what it does"},
    {"list", "show the held threads and the breakpoints"},
    {0},
};

const struct command command_control = {
    .name = "control",
    .run = cmd_control,
    .operands = "PID VERB [OPERAND ...]",
    .min_operands = 2,
    .max_operands = 6,
    .operands_may_begin_with_dash = true,
    .words_title = "VERB",
    .words = control_words,
    .summary = "hold threads, change locals, step, redefine classes in a running VM that allows it",
    .related = "inspect run attach",
    .description =
        "Use it to debug a program to which no debugger can be attached.\n\n"
        "Works only if *--allow-control* was given to *run* or *attach*. The VM prints and "
        "records every command. A value is a number, true, false, 'c', null, \"text\" "
        "with its quotation marks (for a shell '\"text\"'), or @NUMBER, an object that inspect "
        "shows. A place is pkg.Class.method or pkg.Class:LINE. "
        "When the recording ends, held threads continue and breakpoints are removed.",
    .caveats =
        "After *attach*, only the verbs suspend, resume, interrupt, stop, redefine, verbose and"
        " list work, because HotSpot allows the others only when they were requested at its "
        "start.",
    .examples = "  jvmscope run --allow-control -o app.jfr -- java -jar app.jar\n"
                "  jvmscope control 4711 break com.shop.Cart:42\n"
                "  jvmscope control 4711 list                       who is held where\n"
                "  jvmscope inspect 4711 stack worker-1             its frames with their locals\n"
                "  jvmscope control 4711 set worker-1 0 total 100\n"
                "  jvmscope control 4711 step worker-1 over\n"
                "  jvmscope control 4711 resume worker-1\n",
    .sets = json_only_sets,
};
