/* SPDX-License-Identifier: Apache-2.0 */
/* serve: shows recordings and heap dumps in a browser. */
#include "base/clock.h"
#include "base/file.h"
#include "base/file_format.h"
#include "cli/commands.h"
#include "cli/losses.h"
#include "cli/sources.h"
#include "page/page.h"
#include "page/server.h"
#include "profile/load.h"
#include "profile/profile.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct serve {
    const char *listen, *sources;
    uint64_t port, query_limit;
};

static const struct arg serve_args[] = {
    {"--listen", 0, ARG_TEXT, offsetof(struct serve, listen), "ADDRESS",
     "listen on this address instead of 127.0.0.1: others can then see the files"},
    {"--port", 'p', ARG_NUMBER, offsetof(struct serve, port), "PORT",
     "listen on this port instead of a free one", .max = 65535},
    {"--query-limit", 0, ARG_SPAN, offsetof(struct serve, query_limit), "TIME",
     "how long a query of a heap dump may take (10s)"},
    {"--sources", 's', ARG_LIST, offsetof(struct serve, sources), "DIR",
     "where source files are, to show coverage in a page"},
    {0},
};

static const struct arg_set serve_set = {"Where", serve_args};
static const struct arg_set *const serve_sets[] = {&serve_set, NULL};

/* Serves until a signal arrives. */
static int serve(struct page_server *pages, const struct serve *o)
{
    char url[512];
    struct server *server;
    struct server_options options = {o->listen ? o->listen : "127.0.0.1", (uint16_t)o->port,
                                     page_server_answer, pages};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int number, r = server_start(&server, &options, url, sizeof(url));
    if (r == -EINVAL)
        return complain(options.address, "cannot listen", "takes an address in numbers");
    if (r < 0 && o->port) {
        snprintf(url, sizeof(url), "%s, port %u", options.address, (unsigned)o->port);
        return complain_errno(url, "cannot listen", r);
    }
    if (r < 0)
        return complain_errno(options.address, "cannot listen", r);
    if (o->listen && strncmp(o->listen, "127.", 4) != 0)
        complain("note",
                 "other machines can reach this address, unencrypted; its token is all that "
                 "protects the files",
                 NULL);
    printf("%s\n", url);
    fflush(stdout);
    sigwait(&signals, &number);
    server_stop(server);
    return 0;
}

/*
 * Checks that a file can be shown. Large files are read only when the page asks for them, and dumps
 * are. Sets *ret_dump if it may be a heap dump. Returns 0, or the exit status after a complaint.
 */
static int check_file(const char *path, bool *ret_dump)
{
    enum { SMALL = 16 << 20 };

    _cleanup_(profile_freep) struct profile *p = NULL;
    _cleanup_(buf_release) struct buf why = BUF(4096);
    struct file_map map = {0};
    int r = file_map_open(&map, path);
    if (r < 0)
        return complain_errno(path, "cannot read", r);
    enum file_format format = file_format_of(map.data, map.len);
    bool may_be_dump = format == FORMAT_GZIP || format == FORMAT_HPROF;
    bool checked = map.len < SMALL && !may_be_dump;
    file_map_release(&map);
    *ret_dump |= may_be_dump;
    if (checked)
        r = profile_load(&p, path, LOAD_SAMPLES, NULL, &why, NULL, NULL);
    if (r < 0)
        return why.len ? complain(path, "cannot read", buf_str(&why))
                       : complain_errno(path, "cannot read", r);
    losses_report_known(path, NULL, false);
    return 0;
}

static int cmd_serve(const struct command *self, int argc, char **argv)
{
    struct serve options = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &options}), argc, argv, &operands, &status))
        return status;
    if (options.sources && !sources_check(options.sources))
        return 2;
    bool any_dump = false;
    for (int i = 0; i < operands.count; i++) {
        status = check_file(operands.list[i], &any_dump);
        if (status)
            return status;
    }
    if (options.sources)
        sources_note_without_effect(options.sources, operands.list, operands.count);
    if (options.query_limit && !any_dump)
        complain("--query-limit", "note",
                 "has no effect, because none of the files is a heap dump");
    if (!page_head[0])
        return complain(
            self->name, "this build has no page",
            "npm or its packages were missing when it was built; install npm and build again");
    _cleanup_(page_server_freep) struct page_server *pages = NULL;
    uint64_t limit_ns = options.query_limit ? options.query_limit : 10 * NS_PER_SECOND;
    int r =
        page_server_new(&pages, operands.list, (size_t)operands.count, options.sources, limit_ns);
    return r < 0 ? complain_errno(self->name, "cannot start", r) : serve(pages, &options);
}

const struct command command_serve = {
    .name = "serve",
    .run = cmd_serve,
    .operands = "FILE ...",
    .min_operands = 1,
    .max_operands = -1,
    .summary = "show recordings and heap dumps in a browser, from this machine",
    .related = "convert report heap",
    .description =
        "Use it to explore a recording with flame graphs and timelines, where tables do not "
        "show enough.\n\n"
        "Prints an address to open and serves the files there until it is interrupted. The "
        "address carries a random token; requests without it, for another host or from another "
        "site are refused. Only this machine can reach it, unless --listen says otherwise.",
    .examples = "  jvmscope serve app.jfr                           one recording\n"
                "  jvmscope serve before.jfr after.jfr app.hprof    several files\n",
    .sets = serve_sets,
};
