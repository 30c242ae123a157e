/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jvmscope slow: records the requests of a running VM for a while and says why the slow ones are
 * slow.
 */
#include "base/clock.h"
#include "base/parse.h"
#include "cli/attach.h"
#include "cli/capture.h"
#include "cli/commands.h"
#include "cli/recording.h"
#include "cli/requests/requests.h"
#include "cli/target.h"
#include "options/options.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#define TIME_NS (20 * NS_PER_SECOND)

static const struct arg_set *const slow_sets[] = {&capture_set, &request_now_set, NULL};

static int report(const char *output, const struct request_options *options)
{
    struct request_view v;
    int status = request_view_open(&v, options, output, true);
    if (status)
        return status;
    /* Losses were already reported when the recording was complete. */
    status = requests_slow(&v, true);
    request_view_free(&v);
    return status;
}

static int cmd_slow(const struct command *self, int argc, char **argv)
{
    _cleanup_(capture_release) struct capture_options capture = {0};
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    struct request_options options = {.stacks = REQUEST_FRAMES};
    struct operands operands;
    char output[PATH_MAX];
    int status;
    if (!args_parse(self, ARGS({&capture_set, &capture}, {&request_now_set, &options}), argc, argv,
                    &operands, &status))
        return status;
    if (!request_options_check(&options, self->name))
        return 2;
    if (!(capture.given >> OPT_REQUESTS & 1))
        capture_add(&capture, OPT_REQUESTS, option_table[OPT_REQUESTS].bare);
    capture.time_ns = capture.time_ns ? capture.time_ns : TIME_NS;
    status = target_open(&vm, operands.list[0]);
    if (status)
        return status;
    const char *pattern = capture.output ? capture.output : "jvmscope-%p.jfr";
    if (expand_file_name(pattern, vm.pid, output, sizeof(output)) < 0) {
        complain(pattern, "not a file name",
                 "%p is the process id, %t the time, %% a percent sign");
        return 2;
    }
    const char *extension = strrchr(output, '.');
    if (!extension || strcasecmp(extension, ".jfr") != 0) {
        complain(output, "the recording must be a .jfr",
                 "jvmscope convert turns it into a page or another format");
        return 2;
    }
    if (!recording_check(&capture, output, self->name))
        return 2;
    status = attach_record(&vm, &capture, output);
    return status ? status : report(output, &options);
}

const struct command command_slow = {
    .name = "slow",
    .run = cmd_slow,
    .operands = "PID",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "explain why the slow requests of a running server are slow",
    .related = "requests attach",
    .description =
        "Use it when a running server answers some requests slowly. It needs no preparation.\n\n"
        "Records the requests of a running VM for 20 seconds, or as long as *-t* says, as "
        "*jvmscope attach --requests* does, and prints for each name how many were slow, what the "
        "slow ones did that the typical ones did not, and what was to blame. The recording "
        "is kept, always as a .jfr: *jvmscope requests slow* shows its stacks, and *jvmscope "
        "requests show* shows "
        "one request.",
    .caveats =
        "It needs slow requests while it records: what occurs less often than in these seconds "
        "is not seen, and causes of a few requests may be chance. Requests that were in "
        "progress when it began are not counted.",
    .examples = "  jvmscope slow 4711\n"
                "  jvmscope slow -t 1m --over 500ms -o slow.jfr 4711\n"
                "  jvmscope slow --requests 'com.shop.Order.handle(..)' 4711\n",
    .sets = slow_sets,
};
