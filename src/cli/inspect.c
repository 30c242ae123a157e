/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/target.h"

#include <errno.h>
#include <string.h>

/*
 * Reads text in the format of a properties file (java.util.Properties.load) up to its end or, for a
 * key, up to the '=' after it: "https\\://x" becomes "https://x". Returns where it stopped.
 */
static const char *take_property(const char *p, bool key, struct buf *ret)
{
    static const char escapes[] = "ntrf", meant[] = "\n\t\r\f";
    unsigned c;
    buf_clear(ret);
    for (; *p && !(key && *p == '='); p++) {
        if (*p != '\\' || !p[1]) {
            buf_u8(ret, (uint8_t)*p);
            continue;
        }
        const char *escape = strchr(escapes, *++p);
        if (*p == 'u' && strspn(p + 1, "0123456789abcdefABCDEF") >= 4 &&
            sscanf(p + 1, "%4x", &c) == 1) {
            utf8_put(ret, c);
            p += 4;
        } else {
            buf_u8(ret, escape ? (uint8_t)meant[escape - escapes] : (uint8_t)*p);
        }
    }
    return p;
}

/*
 * Prints the system properties. They need no agent, because HotSpot's attach protocol returns them
 * as a properties file.
 */
static int print_properties(const struct vm *vm, const char *pid, bool as_json)
{
    _cleanup_(buf_release) struct buf answer = BUF(ATTACH_ANSWER_MAX), why = BUF(4096),
                                      out = BUF(ATTACH_ANSWER_MAX);
    _cleanup_(buf_release) struct buf key = BUF(ATTACH_ANSWER_MAX), value = BUF(ATTACH_ANSWER_MAX);
    int status;
    int r = attach_command(vm, "properties", (const char *const[ATTACH_ARGS]){NULL, NULL, NULL},
                           ATTACH_QUESTION_NS, NULL, &answer, &status, &why);
    if (r < 0 || status)
        return r < 0 && !why.len
                   ? complain_errno(pid, "properties", r)
                   : complain(pid, "properties", r < 0 ? buf_str(&why) : "the VM refused");
    struct json j = {.out = &out};
    json_begin_object(&j);
    json_key_object(&j, "properties");
    char *line, *rest = (char *)buf_str(&answer);
    while ((line = strsep(&rest, "\n"))) {
        const char *end = *line == '#' ? "" : take_property(line, true, &key);
        if (!*end)
            continue;
        take_property(end + 1, false, &value);
        if (as_json) {
            json_key_string(&j, buf_str(&key), buf_str(&value));
        } else {
            printf("%-36s %s\n", buf_str(&key), buf_str(&value));
        }
    }
    json_end_object(&j);
    json_end_object(&j);
    if (as_json)
        puts(buf_str(&out));
    return 0;
}

static int cmd_inspect(const struct command *self, int argc, char **argv)
{
    struct json_only options = {0};
    struct operands operands;
    int status;
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    if (!target_begin(&vm, self, &options, argc, argv, &operands, &status))
        return status;
    if (strcmp(operands.list[1], "properties") == 0)
        return print_properties(&vm, operands.list[0], options.json);
    _cleanup_(buf_release) struct buf message = BUF(4096);
    buf_printf(&message, "control=inspect,%s%s%s", operands.list[1], operands.count > 2 ? " " : "",
               operands.count > 2 ? operands.list[2] : "");
    return target_show(&vm, "inspect", buf_str(&message), true, options.json, NULL);
}

static const struct operand_word inspect_words[] = {
    {"threads", "the threads with their states and locks"},
    {"groups", "the thread groups and their threads"},
    {"stack THREAD", "the frames of a thread, given by its name or number"},
    {"classes [PATTERN]", "the loaded classes, and arrays"},
    {"class NAME", "the fields and methods of a class, and where its compiled code lies"},
    {"statics NAME", "the static fields of a class with their values"},
    {"modules", "the modules"},
    {"instances CLASS", "the live objects of a class"},
    {"object NUMBER", "an object with its fields or elements"},
    {"free NUMBER|all", "forget the numbers of objects"},
    {"properties", "the system properties"},
    {"vm", "the version of the VM, and what it allows"},
    {"deadlocks", "threads that wait for each other"},
    {0},
};

const struct command command_inspect = {
    .name = "inspect",
    .run = cmd_inspect,
    .operands = "PID WHAT [OPERAND]",
    .min_operands = 2,
    .max_operands = 3,
    .words_title = "WHAT",
    .words = inspect_words,
    .summary = "inspect the threads, classes and objects of a running VM",
    .related = "control top heap threads",
    .description =
        "Use it to examine what a program is doing at this moment, without a recording.\n\n"
        "Asks the agent in the VM, and loads it first if necessary. Objects are shown as "
        "Class@NUMBER; a number stays valid over collections until the object dies or is freed."
        " No code of the program is called.\n\n"
        "*classes* lists arrays as well, which are classes too, but *loaded* is the number of the "
        "others. *top* shows what the VM itself counts: a few more than it lists, and each class "
        "that an agent has changed once more for each change. Classes of the agent are counted "
        "(*of jvmscope*), not listed.",
    .caveats =
        "A stack shows locals only if the agent was loaded when the VM started, because the VM "
        "does not give them to an agent that is loaded later. A logpoint (*attach --log*) reads"
        " locals at a line in any VM.",
    .examples = "  jvmscope inspect 4711 threads\n"
                "  jvmscope inspect 4711 stack main                 frames with their locals\n"
                "  jvmscope inspect 4711 class java.util.HashMap    fields, methods, where "
                "compiled code lies\n"
                "  jvmscope inspect 4711 instances java.util.Timer\n"
                "  jvmscope inspect 4711 object 17\n",
    .sets = json_only_sets,
};
