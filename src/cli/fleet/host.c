/* SPDX-License-Identifier: Apache-2.0 */
/* host: keeps the always-on agent in the VMs of this machine and sends what they record. */
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/pattern.h"
#include "cli/commands.h"
#include "cli/fleet/origin.h"
#include "cli/fleet/self.h"
#include "cli/fleet/send.h"
#include "cli/fleet/spool.h"
#include "cli/fleet/watched.h"
#include "cli/json_view.h"
#include "cli/target.h"
#include "jfr/span.h"
#include "options/rings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct host_options {
    const char *match, *to, *token, *spool, *record, *labels;
    uint64_t every, spool_size;
};

static const struct arg host_args[] = {
    {"--match", 0, ARG_LIST, offsetof(struct host_options, match), "PATTERN",
     "record only VMs whose main class or jar matches: 'com.shop.*'"},
    {"--to", 0, ARG_TEXT, offsetof(struct host_options, to), "URL",
     "send to this collector: http://HOST:4040"},
    {"--token", 0, ARG_TEXT, offsetof(struct host_options, token), "TOKEN",
     "the collector's token, or @FILE to read it from a file"},
    {"--label", 0, ARG_LIST, offsetof(struct host_options, labels), "KEY=VALUE",
     "add this label to every profile that is sent"},
    {0},
};

static const struct arg how_args[] = {
    {"--every", 0, ARG_DURATION, offsetof(struct host_options, every), "TIME",
     "how often to send a profile of each VM (1m, at least 1s)", .min = NS_PER_SECOND},
    {"--record", 0, ARG_TEXT, offsetof(struct host_options, record), "OPTIONS",
     "record this instead of what --always records, in options of attach: '--cpu --alloc'"},
    {"--spool", 0, ARG_TEXT, offsetof(struct host_options, spool), "DIR",
     "keep profiles that could not be sent yet in this directory (/var/tmp/jvmscope-host-UID)"},
    {"--spool-size", 0, ARG_SIZE, offsetof(struct host_options, spool_size), "SIZE",
     "how much --spool may hold; when it is full, the oldest profile is dropped (256M)",
     .min = 1 << 20},
    {0},
};

static const struct arg_set host_set = {"What and where", host_args};
static const struct arg_set how_set = {"How", how_args};
static const struct arg_set *const host_sets[] = {&host_set, &how_set, NULL};

/*
 * MARGIN_NS: samples arrive in the ring up to a tenth of a second after they were taken, and later
 * on a busy machine. Anything more recent is left for the next profile.
 */
#define MARGIN_NS (2 * (int64_t)NS_PER_SECOND)

#define BEFORE_NS (5 * NS_PER_SECOND)
#define ALL_NS    (UINT64_C(1) << 60)

enum { ARGUMENTS_MAX = 64, PATH_LEN = 600, TRIES_MAX = 60 };

/* A VM that cannot be recorded, and for which this has been reported. */
struct left_out {
    pid_t pid;
    bool is_tried; /* in every round, because the reason will pass */
};

struct host {
    const struct host_options *o;
    struct spool spool;
    struct sender sender;
    struct watched_list list;
    VEC(struct left_out) left_out;
    bool unsaved; /* the state of a VM could not be stored, which has been reported */
};

/* ---- VMs */

static uint64_t start_of(pid_t pid)
{
    _cleanup_free_ uint8_t *text = NULL;
    char path[64];
    size_t len;
    unsigned long long start = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (file_read_path(path, 1 << 16, &text, &len) < 0)
        return 0;
    const char *behind = strrchr((char *)text, ')');
    /* Field 22; the name is followed by field 3. */
    if (behind)
        (void)sscanf(behind + 1,
                     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
                     "%llu",
                     &start);
    return start;
}

static struct left_out *find_left_out(struct host *h, pid_t pid)
{
    for (size_t i = 0; i < h->left_out.len; i++)
        if (h->left_out.data[i].pid == pid)
            return &h->left_out.data[i];
    return NULL;
}

static void leave_out(struct host *h, const struct vm *vm, const char *why, bool for_now)
{
    struct left_out *known = find_left_out(h, vm->pid);
    char pid[16];
    if (known) {
        known->is_tried = for_now;
        return;
    }
    snprintf(pid, sizeof(pid), "%d", vm->pid);
    complain(pid, for_now ? "left out for now" : "left out", why);
    (void)!vec_push(&h->left_out, ((struct left_out){vm->pid, for_now}));
}

/* ---- taking profiles */

/*
 * Finds the ring of a VM in a place that agents choose when they are given none (options/rings.h).
 * Returns NULL when there is none.
 */
static char *ring_in_folders(pid_t pid)
{
    char pattern[64], *found = NULL;
    glob_t g;
    snprintf(pattern, sizeof(pattern), "{/var,}/tmp/" RING_PREFIX "%d-*" RING_SUFFIX, pid);
    if (glob(pattern, GLOB_BRACE, NULL, &g) == 0) {
        found = strdup(g.gl_pathv[0]);
        globfree(&g);
    }
    return found;
}

enum recording { RECORDING_NONE, RECORDING_ALWAYS, RECORDING_OTHER };

/*
 * Returns what a VM records, as its agent reports it. *ret_ring becomes the file of the ring of a
 * recording that is always on, or NULL if unknown.
 */
static enum recording recording_of(pid_t pid, char **ret_ring)
{
    _cleanup_(buf_release) struct buf answer = BUF(1 << 20);
    char number[16];
    snprintf(number, sizeof(number), "%d", pid);
    const char *const arguments[] = {"jvmscope", "status", "--json", number, NULL};
    *ret_ring = NULL;
    if (self_run(arguments, &answer, false) != 0)
        return RECORDING_NONE;
    char *file = json_view_text(buf_str(&answer), "file");
    if (file && strstr(buf_str(&answer), "\"ring.size\":")) {
        /* The VM's working directory is not this one. */
        *ret_ring = *file == '/' ? file : NULL;
        if (*file != '/')
            free(file);
        return RECORDING_ALWAYS;
    }
    enum recording found = file ? RECORDING_OTHER : RECORDING_NONE;
    free(file);
    return found;
}

/* The command line of `attach` in a VM, without the process id. */
struct attach_words {
    const char *list[ARGUMENTS_MAX]; /* ends with NULL, after which there is room for one more */
    size_t n;
    char *text; /* contains the words of --record */
};

/*
 * Splits the options in `record`. Returns false if there are too many, or no memory. The caller
 * frees words->text.
 */
static bool attach_words_split(struct attach_words *words, const char *record)
{
    char *rest;
    *words = (struct attach_words){{"jvmscope", "attach", "--always"}, 3, strdup(record)};
    for (char *t = words->text ? strtok_r(words->text, " ", &rest) : NULL;
         t && words->n < ARGUMENTS_MAX - 1; t = strtok_r(NULL, " ", &rest))
        words->list[words->n++] = t;
    if (words->text && words->n < ARGUMENTS_MAX - 1)
        return true;
    free(words->text);
    return false;
}

static int attach(struct host *h, const struct vm *vm, struct watched *w)
{
    _cleanup_(buf_release) struct buf messages = BUF(1 << 20);
    struct attach_words words;
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", vm->pid);
    if (!attach_words_split(&words, h->o->record ? h->o->record : ""))
        return -ENOMEM;
    words.list[words.n] = pid;
    int status = self_run(words.list, &messages, true);
    free(words.text);
    enum recording recording = recording_of(vm->pid, &w->ring);
    if (status != 0 && recording != RECORDING_ALWAYS && !w->from_disk) {
        leave_out(h, vm, self_reason(&messages), recording == RECORDING_OTHER);
        return -EIO;
    }
    /* If it is from the disk, an earlier host was killed while its `attach` was running. */
    w->is_others = status != 0 && !w->from_disk;
    if (!w->ring && !w->is_others)
        w->ring = ring_in_folders(vm->pid);
    w->attached = true;
    watched_save(w, &h->spool);
    return 0;
}

/*
 * Puts what the ring contains after w->after into the spool. source: a process id, or the file of a
 * ring. Returns 0 when the part is in the spool or there is nothing new, otherwise a negative
 * errno.
 */
static int take(struct host *h, struct watched *w, const char *source, bool at_its_end)
{
    _cleanup_(buf_release) struct buf messages = BUF(1 << 20), query = BUF(1 << 20);
    char body[PATH_LEN], last[32];
    struct jfr_span span;
    spool_body(&h->spool, h->spool.next, body);
    uint64_t began_ns = now_ns();
    /*
     * Requests that end within this profile may have begun before it. After a reboot the clock
     * starts anew.
     */
    uint64_t age =
        w->taken_ns && began_ns >= w->taken_ns ? began_ns - w->taken_ns + BEFORE_NS : ALL_NS;
    snprintf(last, sizeof(last), "%" PRIu64 "ms", age / NS_PER_MS);
    const char *const arguments[] = {"jvmscope", "dump", "--last", last, "-o", body, source, NULL};
    if (self_run(arguments, &messages, true) != 0) {
        unlink(body);
        /* A VM that is ending refuses once; the next round takes its last profile from its ring. */
        if (at_its_end ? w->tries == 0 : ++w->failures == 2)
            complain(source, "no profile", self_reason(&messages));
        return -EIO;
    }
    w->failures = 0;
    int r = jfr_span_read(body, &span);
    int64_t until = at_its_end ? span.end + 1 : span.end - MARGIN_NS;
    if (r == 0 && until <= w->after) {
        unlink(body);
        return 0;
    }
    buf_printf(&query, "id=%d-%" PRIu64 "-%" PRId64 "-%" PRId64 "&after_ns=%" PRId64, w->pid,
               w->start, w->after, until, span.epoch_ns + w->after);
    if (!at_its_end)
        buf_printf(&query, "&until_ns=%" PRId64, span.epoch_ns + until);
    buf_printf(&query, "&%s", w->query);
    if (r == 0)
        r = buf_error(&query) ? buf_error(&query) : spool_commit(&h->spool, buf_str(&query));
    if (r < 0) {
        unlink(body);
        complain_errno(h->spool.folder, "cannot keep a profile", r);
        return r;
    }
    w->after = until;
    w->taken_ns = began_ns - MIN(began_ns, (uint64_t)MARGIN_NS);
    watched_save(w, &h->spool);
    return 0;
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
    for (size_t i = 0; i < h->list.vms.len; i++)
        if (h->list.vms.data[i].pid == pid && h->list.vms.data[i].start == start)
            return &h->list.vms.data[i];
    return NULL;
}

static void update_vm(struct host *h, const struct vm *vm)
{
    struct watched one = {.pid = vm->pid, .start = start_of(vm->pid)}, *w;
    const char *why =
        vm->dies_of_quit && !vm->openj9 && !vm->attach_disabled ? NULL : vm_refusal(vm);
    char pid[16];
    if (!vm_matches(vm, h->o->match) || !one.start)
        return;
    if (why) {
        leave_out(h, vm, why, false);
        return;
    }
    /*
     * The VM is starting or stopped, so the next round tries it again. What it has recorded is not
     * lost.
     */
    w = find(h, vm->pid, one.start);
    if (w)
        w->is_listed = true;
    if (vm->dies_of_quit || vm_is_stopped(vm))
        return;
    if (!w) {
        const struct left_out *left_out = find_left_out(h, vm->pid);
        if (left_out && !left_out->is_tried)
            return;
        /*
         * The state is stored before the attach, so that the attach is known even if this process
         * is killed before it ends.
         */
        one.query = query_of(h, vm);
        one.is_listed = true;
        if (one.query)
            watched_save(&one, &h->spool);
        if (!one.query || vec_push(&h->list.vms, one) < 0) {
            watched_release(&one);
            return;
        }
        w = &h->list.vms.data[h->list.vms.len - 1];
    }
    if (!w->attached && attach(h, vm, w) < 0) {
        watched_forget(w, &h->spool);
        watched_release(w);
        h->list.vms.len--; /* removes the VM that was added above */
        return;
    }
    watched_hold(w, &h->spool);
    snprintf(pid, sizeof(pid), "%d", vm->pid);
    (void)!take(h, w, pid, false);
}

/*
 * Handles VMs that have ended. Their rings remain, with what was recorded since the last profile.
 */
static void see_off(struct host *h)
{
    char held[WATCHED_HELD_LEN];
    size_t kept = 0;
    for (size_t i = 0; i < h->list.vms.len; i++) {
        struct watched w = h->list.vms.data[i];
        if (w.is_listed) {
            h->list.vms.data[kept++] = w;
            continue;
        }
        watched_held(&w, &h->spool, held);
        const char *ring = access(held, R_OK) == 0 ? held : w.ring;
        if (ring && access(ring, R_OK) == 0) {
            /*
             * The disk may be full for a while only, so this is tried several times before a ring
             * is given up.
             */
            if (take(h, &w, ring, true) < 0 && ++w.tries < TRIES_MAX) {
                h->list.vms.data[kept++] = w;
                continue;
            }
            if (w.ring && !w.is_others)
                unlink(w.ring);
        }
        watched_forget(&w, &h->spool);
        watched_release(&w);
    }
    h->list.vms.len = kept;
}

static bool has(const struct vm *vms, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (vms[i].pid == pid)
            return true;
    return false;
}

static void forget_left_out(struct host *h, const struct vm_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->left_out.len; i++) {
        struct left_out l = h->left_out.data[i];
        if (has(list->vms.data, list->vms.len, l.pid) ||
            has(list->left_out.data, list->left_out.len, l.pid))
            h->left_out.data[kept++] = l;
    }
    h->left_out.len = kept;
}

/*
 * An upload that was sent is removed from the spool, which then no longer shows the position up to
 * which a ring was taken. The positions must therefore be stored before anything is sent.
 */
static bool all_saved(struct host *h)
{
    bool all = true;
    for (size_t i = 0; i < h->list.vms.len; i++) {
        struct watched *w = &h->list.vms.data[i];
        if (!w->is_saved)
            watched_save(w, &h->spool);
        all = all && w->is_saved;
    }
    if (!all && !h->unsaved)
        complain(h->spool.folder, "cannot be written; nothing is sent", NULL);
    h->unsaved = !all;
    return all;
}

static void round_of(struct host *h)
{
    struct vm_list list;
    int r = vm_list_read(&list);
    if (r < 0) {
        complain_errno("host", "cannot read /proc", r);
        return;
    }
    for (size_t i = 0; i < h->list.vms.len; i++)
        h->list.vms.data[i].is_listed = false;
    forget_left_out(h, &list);
    for (size_t i = 0; i < list.vms.len; i++)
        update_vm(h, &list.vms.data[i]);
    for (size_t i = 0; i < list.left_out.len; i++)
        if (vm_matches(&list.left_out.data[i], h->o->match))
            leave_out(h, &list.left_out.data[i], target_missing_right(), false);
    see_off(h);
    vm_list_release(&list);
    uint64_t dropped = h->spool.dropped;
    if (all_saved(h))
        sender_send(&h->sender, &h->spool);
    if (dropped) {
        complain("host", "the spool is full (--spool-size), dropped",
                 COUNT_TEXT(dropped, "profiles"));
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

static int wrong(const char *what, const char *why)
{
    complain("host", what, why);
    return 2;
}

/*
 * Checks the options of --record by running `attach` with them and with a process id that Linux
 * never assigns: it fails with 2 if the options are wrong, and with 1 because of the process.
 */
static int check_record(const char *record)
{
    _cleanup_(buf_release) struct buf messages = BUF(1 << 20);
    struct attach_words words;
    if (!attach_words_split(&words, record))
        return wrong("--record", "too many options");
    words.list[words.n] = "2147483647";
    int status = self_run(words.list, &messages, true);
    free(words.text);
    return status == 1 ? 0 : wrong("--record takes options of attach", self_reason(&messages));
}

static int check(const struct host_options *o)
{
    _cleanup_free_ char *labels = o->labels ? strdup(o->labels) : NULL;
    char *rest;
    int count = 0;
    if (!o->to)
        return wrong("--to URL is missing", "--to http://HOST:4040");
    if (!sender_is_url(o->to))
        return wrong("--to takes a collector's address, http://HOST:4040", o->to);
    for (char *t = labels ? strtok_r(labels, ",", &rest) : NULL; t;
         t = strtok_r(NULL, ",", &rest)) {
        size_t n = strcspn(t, "=");
        if (!t[n] || !n || !t[n + 1])
            return wrong("--label takes KEY=VALUE", t);
        if (n >= ORIGIN_TEXT || strlen(t + n + 1) >= ORIGIN_TEXT)
            return wrong("--label: too long", "a key or a value has at most 255 bytes");
        for (char *before = labels; before < t; before += strlen(before) + 1)
            if (strncmp(before + strspn(before, ","), t, n + 1) == 0)
                return wrong("--label: this key is given twice", t);
        if (++count > ORIGIN_LABELS)
            return wrong("--label: at most 32 labels are sent", t);
    }
    return o->record ? check_record(o->record) : 0;
}

static int cmd_host(const struct command *self, int argc, char **argv)
{
    struct host_options o = {.every = 60 * NS_PER_SECOND, .spool_size = UINT64_C(256) << 20};
    struct host h = {.o = &o, .spool = {.lock_fd = -1, .running_fd = -1}};
    struct operands operands;
    char folder[64];
    int status;
    if (!args_parse(self, ARGS({NULL, &o}), argc, argv, &operands, &status))
        return status;
    status = check(&o);
    if (status)
        return status;
    snprintf(folder, sizeof(folder), "/var/tmp/jvmscope-host-%u", geteuid());
    const char *spool = o.spool ? o.spool : folder;
    status = sender_open(&h.sender, o.to, o.token);
    int r = status ? 0 : spool_open(&h.spool, spool, o.spool_size);
    if (r < 0)
        status = r == -EAGAIN ? complain(spool, "another `jvmscope host` uses this spool",
                                         "choose another with --spool DIR")
                              : complain_errno(spool, "cannot be used as a spool", r);
    if (status == 0) {
        watched_read_all(&h.list, &h.spool);
        status = watch(&h);
    }
    spool_close(&h.spool);
    sender_release(&h.sender);
    for (size_t i = 0; i < h.list.vms.len; i++)
        watched_release(&h.list.vms.data[i]);
    vec_release(&h.list.vms);
    vec_release(&h.left_out);
    return status;
}

const struct command command_host = {
    .name = "host",
    .run = cmd_host,
    .operands = "",
    .summary = "record all VMs of this machine and send their profiles to a collector",
    .related = "collect fleet attach",
    .description =
        "Use it on each machine whose programs are to be recorded all the time.\n\n"
        "Finds the VMs of this machine, including those in containers, starts *jvmscope attach "
        "--always* in each, and sends what they recorded to a *jvmscope collect* every minute. "
        "A profile is named by OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES in the VM's "
        "environment and by the variables that Kubernetes sets (POD_NAME, POD_NAMESPACE, "
        "NODE_NAME), and otherwise by its main class or jar.\n\n"
        "When this command ends, the agents keep recording, and the next start of this command "
        "continues where it stopped.",
    .caveats =
        "A profile that cannot be sent is kept on the disk and sent later, in order and once; "
        "when the spool is full, the oldest is dropped, and a message says so. Samples of the "
        "last two seconds are left for the next profile.",
    .examples = "  jvmscope host --to http://collector:4040 --token @/etc/jvmscope.token\n"
                "  jvmscope host --match 'com.shop.*' --to http://127.0.0.1:4040\n",
    .sets = host_sets,
};
