/* SPDX-License-Identifier: Apache-2.0 */
/* status, dump, stop: messages to the agent of a VM that is being recorded. */
#include "base/json.h"
#include "cli/builtin.h"
#include "cli/report.h"
#include "cli/target.h"

#include <string.h>

struct control {
    bool json;
    const char *output;
};

static const struct arg status_args[] = {
    {"--json", 0, ARG_FLAG, offsetof(struct control, json), NULL, "print JSON"},
    {0},
};

static const struct arg stop_args[] = {
    {"--output", 'o', ARG_TEXT, offsetof(struct control, output), "FILE",
     "write the recording there; its extension picks the format"},
    {0},
};

static const struct arg_set status_set = {"What is shown", status_args}, stop_set = {"Output", stop_args};
const struct arg_set *const status_sets[] = {&status_set, NULL}, *const stop_sets[] = {&stop_set, NULL};

/* Runs a verb on the VM that the operand names; its answer. */
static int send_verb(const struct command *self, int argc, char **argv, struct control *options, const char *verb,
                     struct vm *vm, struct buf *answer)
{
    struct operands operands;
    int status;
    if (!args_parse(self, (void *[]){options}, argc, argv, &operands, &status))
        return status ? status : -1; /* help was printed */
    status = target_open(vm, operands.list[0]);
    return status ? status : target_message(vm, self->name, verb, false, answer);
}

static void print_status_json(char *answer)
{
    _cleanup_(buf_release) struct buf out = BUF(1 << 20);
    struct json j = {&out, false};
    json_object(&j);
    char *line, *rest = answer;
    while ((line = strsep(&rest, "\n"))) {
        char *value = strchr(line, ' ');
        if (!value || strncmp(line, "message ", 8) == 0)
            continue;
        *value++ = 0;
        json_key(&j, line);
        if (*value && !value[strspn(value, "0123456789")] && strlen(value) < 19)
            json_u64(&j, strtoull(value, NULL, 10));
        else
            json_string(&j, value);
    }
    json_object_end(&j);
    puts(buf_str(&out));
}

int cmd_status(const struct command *self, int argc, char **argv)
{
    struct control options = {0};
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    _cleanup_(buf_release) struct buf answer = BUF(1 << 20);
    int status = send_verb(self, argc, argv, &options, "control=status", &vm, &answer);
    if (status)
        return MAX(status, 0);
    if (options.json) {
        print_status_json((char *)answer.data);
        return 0;
    }
    /* Line 1 is the "ok" that target_message has seen. */
    const char *line = strchr(buf_str(&answer), '\n');
    for (; line && line[1]; line = strchr(line + 1, '\n')) {
        size_t key = strcspn(line + 1, " \n"), all = strcspn(line + 1, "\n");
        if (strncmp(line + 1, "message ", 8) == 0)
            continue;
        printf("%-16.*s ", (int)key, line + 1);
        print_text(stdout, (struct str){line + 1 + MIN(key + 1, all), all - MIN(key + 1, all)});
        putchar('\n');
    }
    return 0;
}

/* dump and stop: where the file is, or a copy of it where it was asked for. */
static int send_and_fetch(const struct command *self, int argc, char **argv, const char *verb, bool ended)
{
    struct control options = {0};
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    _cleanup_(buf_release) struct buf before = BUF(1 << 20), answer = BUF(1 << 20);
    /* An agent that has stopped knows of no file any more. */
    int status = send_verb(self, argc, argv, &options, "control=status", &vm, &before);
    if (status == 0)
        status = target_message(&vm, self->name, verb, false, &answer);
    if (status)
        return MAX(status, 0);
    _cleanup_free_ char *file = agent_answer_value(buf_str(&before), "file", 0);
    if (!file)
        return 0;
    if (options.output)
        return target_fetch(&vm, file, -1, options.output, ended);
    fprintf(stderr, "jvmscope: %d: wrote %s%s\n", vm.pid, file, vm.other_root ? " (as the VM sees it)" : "");
    return 0;
}

int cmd_dump(const struct command *self, int argc, char **argv)
{
    return send_and_fetch(self, argc, argv, "control=dump", false);
}

int cmd_stop(const struct command *self, int argc, char **argv)
{
    return send_and_fetch(self, argc, argv, "control=stop", true);
}
