/* SPDX-License-Identifier: Apache-2.0 */
/* host: keeps the always-on agent in the VMs of this machine and sends what they record. */
#include "base/clock.h"
#include "base/file.h"
#include "base/pattern.h"
#include "cli/builtin.h"
#include "cli/fleet/origin.h"
#include "cli/fleet/send.h"
#include "cli/fleet/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct host_options {
    const char *match, *to, *token, *spool, *record, *labels;
    uint64_t every, spool_size;
};

static const struct arg host_args[] = {
    {"--match", 0, ARG_LIST, offsetof(struct host_options, match), "PATTERN",
     "only the VMs whose main class or jar it means: 'com.shop.*'"},
    {"--to", 0, ARG_TEXT, offsetof(struct host_options, to), "URL",
     "the collector: http://HOST:4040"},
    {"--token", 0, ARG_TEXT, offsetof(struct host_options, token), "TOKEN",
     "what the collector asks for; @FILE has it"},
    {"--label", 0, ARG_LIST, offsetof(struct host_options, labels), "KEY=VALUE",
     "a label for everything that is sent from here"},
    {0},
};

static const struct arg how_args[] = {
    {"--every", 0, ARG_DURATION, offsetof(struct host_options, every), "TIME",
     "how often a profile of each VM is sent (1m)"},
    {"--record", 0, ARG_TEXT, offsetof(struct host_options, record), "OPTIONS",
     "what is recorded: options of attach ('--cpu --alloc')"},
    {"--spool", 0, ARG_TEXT, offsetof(struct host_options, spool), "DIR",
     "where profiles wait that could not be sent (/var/tmp/jvmscope-host-UID)"},
    {"--spool-size", 0, ARG_SIZE, offsetof(struct host_options, spool_size), "SIZE",
     "how much may wait; the oldest is dropped beyond it (256M)"},
    {0},
};

static const struct arg_set host_set = {"What and where", host_args};
static const struct arg_set how_set = {"How", how_args};
const struct arg_set *const host_sets[] = {&host_set, &how_set, NULL};

/*
 * MARGIN_NS: samples come into the ring up to a tenth of a second after they were taken, and later
 * on a busy machine. What is younger is left for the next profile.
 */
#define MARGIN_NS (2 * (int64_t)NS_PER_SECOND)

enum { ARGUMENTS_MAX = 64, PATH_LEN = 600 };

/* A VM that is recorded. */
struct watched {
    pid_t pid;
    uint64_t start;   /* of the process, in the kernel's ticks: pids are used again */
    char *ring;       /* the ring's file as this machine sees it; NULL: unknown */
    char *query;      /* who it is, for the URL */
    int64_t after_ns; /* up to when it has been taken, since 1970 */
    bool is_there;    /* in the list of this round */
    bool complained;
};

struct host {
    const struct host_options *o;
    struct spool spool;
    struct sender sender;
    VEC(struct watched) vms;
    VEC(pid_t) left_out; /* VMs that cannot be recorded, which was said */
};

static int64_t wall_ns(void)
{
    return (int64_t)clock_ns(CLOCK_REALTIME);
}

/* ---- other commands */

/*
 * Runs this program with other arguments, which end with NULL, and waits. Its messages go to
 * `messages`. Returns its exit status, or -1.
 */
static int run_self(const char *const *arguments, struct buf *messages)
{
    int ends[2];
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    int r =
        posix_spawn(&child, "/proc/self/exe", &actions, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    int status = -1;
    if (r == 0) {
        _cleanup_free_ uint8_t *text = NULL;
        size_t len = 0;
        if (read_all(ends[0], 1 << 20, &text, &len) == 0)
            buf_bytes(messages, text, len);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    close(ends[0]);
    return status;
}

/* The first line of messages, without the program's name. */
static const char *first_line(struct buf *messages)
{
    static const char name[] = "jvmscope: ";
    const char *text = first_line_of(messages);
    return strncmp(text, name, strlen(name)) == 0 ? text + strlen(name) : text;
}

/* ---- VMs */

static uint64_t start_of(pid_t pid)
{
    _cleanup_free_ uint8_t *text = NULL;
    char path[64];
    size_t len;
    unsigned long long start = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (read_file(path, 1 << 16, &text, &len) < 0)
        return 0;
    const char *behind = strrchr((char *)text, ')');
    /* Field 22; behind the name comes field 3. */
    if (behind)
        (void)sscanf(behind + 1,
                     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
                     "%llu",
                     &start);
    return start;
}

static bool is_wanted(const struct host *h, const struct vm *vm)
{
    const char *name = vm->command ? vm->command : "";
    size_t n = strcspn(name, " ");
    for (const char *at = name; at < name + n; at++)
        if (*at == '/') {
            n -= (size_t)(at + 1 - name);
            name = at + 1;
        }
    return !h->o->match || pattern_match(h->o->match, name, n);
}

static void leave_out(struct host *h, const struct vm *vm, const char *why)
{
    char pid[16];
    for (size_t i = 0; i < h->left_out.len; i++)
        if (h->left_out.data[i] == vm->pid)
            return;
    snprintf(pid, sizeof(pid), "%d", vm->pid);
    complain(pid, "left out", why);
    (void)!vec_push(&h->left_out, vm->pid);
}

static void watched_release(struct watched *w)
{
    free(w->ring);
    free(w->query);
}

/* ---- up to when a VM has been taken, over restarts of this command */

static void state_path(const struct host *h, const struct watched *w, char path[PATH_LEN])
{
    snprintf(path, PATH_LEN, "%s/%d-%" PRIu64 ".taken", h->spool.folder, w->pid, w->start);
}

/* Three lines: up to when, the ring's file, and who it is. */
static void save_state(const struct host *h, const struct watched *w)
{
    _cleanup_(out_file_release) struct out_file out = OUT_FILE;
    _cleanup_(buf_release) struct buf text = BUF(1 << 20);
    char path[PATH_LEN];
    state_path(h, w, path);
    buf_printf(&text, "%" PRId64 "\n%s\n%s\n", w->after_ns, w->ring ? w->ring : "", w->query);
    if (buf_error(&text) || out_file_open_private(&out, path) < 0)
        return;
    if (out_file_write(&out, text.data, text.len) == 0)
        (void)!out_file_commit(&out);
}

static void forget_state(const struct host *h, const struct watched *w)
{
    char path[PATH_LEN];
    state_path(h, w, path);
    unlink(path);
}

/*
 * What waits in the spool has been taken, even if a kill came before the state was saved. Its query
 * begins with the name of the VM.
 */
static void read_spooled_state(const struct host *h, struct watched *w)
{
    struct spool_list list;
    char name[64];
    snprintf(name, sizeof(name), "id=%d-%" PRIu64 "-", w->pid, w->start);
    if (spool_list(&h->spool, &list) < 0)
        return;
    for (size_t i = 0; i < list.numbers.len; i++) {
        _cleanup_free_ char *query = NULL;
        if (spool_query(&h->spool, list.numbers.data[i], &query) < 0 || !strstr(query, name))
            continue;
        const char *until = strstr(query, "until_ns=");
        if (until)
            w->after_ns = MAX(w->after_ns, (int64_t)strtoll(until + 9, NULL, 10));
    }
    vec_release(&list.numbers);
}

static char *take_line(char **rest)
{
    char *line = strsep(rest, "\n");
    return line && *line ? strdup(line) : NULL;
}

/* Reads what an earlier run knew of a VM. */
static void read_state(struct host *h, const char *name)
{
    _cleanup_free_ uint8_t *text = NULL;
    char path[PATH_LEN + 256];
    size_t len;
    int used = 0;
    struct watched w = {.pid = 0};
    if (sscanf(name, "%d-%" SCNu64 ".taken%n", &w.pid, &w.start, &used) != 2 || !used || name[used])
        return;
    snprintf(path, sizeof(path), "%s/%s", h->spool.folder, name);
    if (read_file(path, 1 << 20, &text, &len) < 0)
        return;
    char *rest = (char *)text, *after = strsep(&rest, "\n");
    w.after_ns = after ? (int64_t)strtoll(after, NULL, 10) : 0;
    w.ring = take_line(&rest);
    w.query = take_line(&rest);
    read_spooled_state(h, &w);
    if (!w.after_ns || !w.query || vec_push(&h->vms, w) < 0)
        watched_release(&w);
}

static void read_states(struct host *h)
{
    DIR *d = opendir(h->spool.folder);
    for (struct dirent *e; d && (e = readdir(d));)
        read_state(h, e->d_name);
    if (d)
        closedir(d);
}

/* ---- taking profiles */

/* "... into FILE (64 MiB); take ..." */
static char *ring_of(const char *message)
{
    const char *at = strstr(message, " into "), *end = at ? strstr(at, " (") : NULL;
    return end ? strndup(at + 6, (size_t)(end - at - 6)) : NULL;
}

static int attach(struct host *h, const struct vm *vm, struct watched *w)
{
    _cleanup_(buf_release) struct buf messages = BUF(1 << 20);
    _cleanup_free_ char *record = strdup(h->o->record ? h->o->record : "--cpu --alloc");
    const char *arguments[ARGUMENTS_MAX] = {"jvmscope", "attach", "--always"};
    char pid[16], *rest;
    size_t n = 3;
    snprintf(pid, sizeof(pid), "%d", vm->pid);
    for (char *t = record ? strtok_r(record, " ", &rest) : NULL; t && n < ARGUMENTS_MAX - 2;
         t = strtok_r(NULL, " ", &rest))
        arguments[n++] = t;
    arguments[n] = pid;
    w->after_ns = wall_ns();
    if (run_self(arguments, &messages) != 0) {
        leave_out(h, vm, first_line(&messages));
        return -EIO;
    }
    w->ring = ring_of(buf_str(&messages));
    return 0;
}

/* Takes what the ring has from w->after_ns on. source: a process id, or the file of a ring. */
static void take(struct host *h, struct watched *w, const char *source, bool at_its_end)
{
    _cleanup_(buf_release) struct buf messages = BUF(1 << 20), query = BUF(1 << 20);
    char body[PATH_LEN], last[32];
    int64_t now = wall_ns(), until = at_its_end ? now : now - MARGIN_NS;
    if (until <= w->after_ns)
        return;
    spool_body(&h->spool, h->spool.next, body);
    snprintf(last, sizeof(last), "%" PRId64 "ms", (now - w->after_ns) / 1000000 + 5000);
    const char *const arguments[] = {"jvmscope", "dump", "--last", last, "-o", body, source, NULL};
    if (run_self(arguments, &messages) != 0) {
        unlink(body);
        if (!w->complained && !at_its_end)
            complain(source, "no profile", first_line(&messages));
        w->complained = true;
        return;
    }
    w->complained = false;
    buf_printf(&query, "id=%d-%" PRIu64 "-%" PRId64 "&after_ns=%" PRId64 "&until_ns=%" PRId64 "&%s",
               w->pid, w->start, w->after_ns, w->after_ns, until, w->query);
    int r = buf_error(&query) ? buf_error(&query) : spool_commit(&h->spool, buf_str(&query));
    if (r < 0) {
        unlink(body);
        complain_errno(h->spool.folder, "cannot keep a profile", r);
        return;
    }
    w->after_ns = until;
    save_state(h, w);
}

static char *query_of(const struct host *h, const struct vm *vm)
{
    _cleanup_(buf_release) struct buf query = BUF(1 << 20);
    struct vm_origin origin;
    vm_origin_read(&origin, vm);
    _cleanup_free_ char *labels = h->o->labels ? strdup(h->o->labels) : NULL;
    char *rest;
    for (char *t = labels ? strtok_r(labels, ",", &rest) : NULL; t;
         t = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(t, '=');
        *equals = 0; /* was checked */
        vm_origin_set(&origin, t, equals + 1);
    }
    vm_origin_query(&origin, &query);
    return buf_error(&query) ? NULL : strdup(buf_str(&query));
}

static struct watched *find(struct host *h, pid_t pid, uint64_t start)
{
    for (size_t i = 0; i < h->vms.len; i++)
        if (h->vms.data[i].pid == pid && h->vms.data[i].start == start)
            return &h->vms.data[i];
    return NULL;
}

static void look_at(struct host *h, const struct vm *vm)
{
    struct watched one = {.pid = vm->pid, .start = start_of(vm->pid)}, *w;
    const char *why = vm->openj9            ? VM_IS_OPENJ9
                      : vm->attach_disabled ? "attach is disabled (-XX:+DisableAttachMechanism)"
                                            : NULL;
    char pid[16];
    if (!is_wanted(h, vm) || !one.start)
        return;
    if (why) {
        leave_out(h, vm, why);
        return;
    }
    /* It starts or stands: another round. What it has recorded is not lost. */
    w = find(h, vm->pid, one.start);
    if (w)
        w->is_there = true;
    if (vm->dies_of_quit || vm_is_stopped(vm))
        return;
    if (!w) {
        for (size_t i = 0; i < h->left_out.len; i++)
            if (h->left_out.data[i] == vm->pid)
                return;
        if (attach(h, vm, &one) < 0)
            return;
        one.query = query_of(h, vm);
        one.is_there = true;
        if (!one.query || vec_push(&h->vms, one) < 0) {
            watched_release(&one);
            return;
        }
        w = &h->vms.data[h->vms.len - 1];
        save_state(h, w);
    }
    snprintf(pid, sizeof(pid), "%d", vm->pid);
    take(h, w, pid, false);
}

/* The VMs that have ended leave their rings behind, with what was recorded since the last profile.
 */
static void see_off(struct host *h)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->vms.len; i++) {
        struct watched w = h->vms.data[i];
        if (w.is_there) {
            h->vms.data[kept++] = w;
            continue;
        }
        if (w.ring && access(w.ring, R_OK) == 0) {
            take(h, &w, w.ring, true);
            unlink(w.ring);
        }
        forget_state(h, &w);
        watched_release(&w);
    }
    h->vms.len = kept;
}

static void forget_left_out(struct host *h, const struct vm_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->left_out.len; i++)
        for (size_t k = 0; k < list->vms.len; k++)
            if (list->vms.data[k].pid == h->left_out.data[i]) {
                h->left_out.data[kept++] = h->left_out.data[i];
                break;
            }
    h->left_out.len = kept;
}

static void round_of(struct host *h)
{
    struct vm_list list;
    int r = vm_list_read(&list);
    if (r < 0) {
        complain_errno("host", "cannot read /proc", r);
        return;
    }
    for (size_t i = 0; i < h->vms.len; i++)
        h->vms.data[i].is_there = false;
    forget_left_out(h, &list);
    for (size_t i = 0; i < list.vms.len; i++)
        look_at(h, &list.vms.data[i]);
    see_off(h);
    vm_list_release(&list);
    uint64_t dropped = h->spool.dropped;
    sender_send(&h->sender, &h->spool);
    if (dropped) {
        char text[64];
        snprintf(text, sizeof(text), "%" PRIu64 " profiles", dropped);
        complain("dropped, because the spool is full (--spool-size)", text, NULL);
        h->spool.dropped = 0;
    }
}

static int watch(struct host *h)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    fprintf(stderr, "jvmscope: host: sends to %s; waiting profiles are in %s\n", h->o->to,
            h->spool.folder);
    int number;
    do {
        uint64_t start = now_ns(), took, left;
        round_of(h);
        took = now_ns() - start;
        left = took < h->o->every ? h->o->every - took : 0;
        struct timespec t = {.tv_sec = (time_t)(left / NS_PER_SECOND),
                             .tv_nsec = (long)(left % NS_PER_SECOND)};
        number = sigtimedwait(&signals, NULL, &t);
    } while (number < 0);
    return 0;
}

static int check(const struct host_options *o)
{
    _cleanup_free_ char *labels = o->labels ? strdup(o->labels) : NULL;
    char *rest;
    if (!o->to) {
        complain("host", "--to URL is missing", "--to http://HOST:4040");
        return 2;
    }
    for (char *t = labels ? strtok_r(labels, ",", &rest) : NULL; t;
         t = strtok_r(NULL, ",", &rest)) {
        if (!strchr(t, '=') || *t == '=') {
            complain("host", "--label takes KEY=VALUE", t);
            return 2;
        }
    }
    return 0;
}

int cmd_host(const struct command *self, int argc, char **argv)
{
    struct host_options o = {.every = 60 * NS_PER_SECOND, .spool_size = UINT64_C(256) << 20};
    struct host h = {.o = &o};
    struct operands operands;
    char folder[64];
    int status;
    if (!args_parse(self, (void *[]){&o, &o}, argc, argv, &operands, &status))
        return status;
    status = check(&o);
    if (status)
        return status;
    o.every = MAX(o.every, NS_PER_SECOND);
    snprintf(folder, sizeof(folder), "/var/tmp/jvmscope-host-%u", geteuid());
    int r = spool_open(&h.spool, o.spool ? o.spool : folder, o.spool_size);
    if (r < 0)
        return complain_errno(o.spool ? o.spool : folder, "cannot be used as a spool", r);
    status = sender_open(&h.sender, o.to, o.token);
    if (status == 0) {
        read_states(&h);
        status = watch(&h);
    }
    sender_release(&h.sender);
    for (size_t i = 0; i < h.vms.len; i++)
        watched_release(&h.vms.data[i]);
    vec_release(&h.vms);
    vec_release(&h.left_out);
    return status;
}
