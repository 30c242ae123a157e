/* SPDX-License-Identifier: Apache-2.0 */
/* collect: takes the profiles of many machines into a store, and answers questions about them. */
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "collect/collector.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct collect {
    const char *store, *listen, *tokens, *keep, *recordings;
    uint64_t max_upload, rate, max_series, recordings_size;
};

static const struct arg collect_args[] = {
    {"--store", 0, ARG_TEXT, offsetof(struct collect, store), "URL",
     "keep the profiles in this store: sqlite:FILE or clickhouse://HOST:PORT/DATABASE; created "
     "when missing"},
    {"--listen", 0, ARG_TEXT, offsetof(struct collect, listen), "ADDRESS:PORT",
     "listen on this address (127.0.0.1:4040); port 0 picks a free one"},
    {"--token", 0, ARG_LIST, offsetof(struct collect, tokens), "TENANT=TOKEN",
     "the token of a tenant; @FILE reads one from each line; required unless --listen is a "
     "loopback address"},
    {"--recordings", 0, ARG_TEXT, offsetof(struct collect, recordings), "DIR",
     "keep uploaded recordings that contain requests in this directory; the slowest requests point "
     "to them"},
    {0},
};
static const struct arg limit_args[] = {
    {"--keep", 0, ARG_TEXT, offsetof(struct collect, keep), "TIME,TIME,TIME",
     "how long to keep samples in steps of 10 s, of 5 min and of 1 h (2d,30d,400d)"},
    {"--max-upload", 0, ARG_SIZE, offsetof(struct collect, max_upload), "SIZE",
     "the largest upload to accept (32M)", .min = 1},
    {"--rate", 0, ARG_NUMBER, offsetof(struct collect, rate), "N",
     "how many uploads per second a tenant may send (200)", .min = 1},
    {"--max-series", 0, ARG_NUMBER, offsetof(struct collect, max_series), "N",
     "how many different sets of service, version, host, instance and labels a tenant may have "
     "(100000)",
     .min = 1},
    {"--recordings-size", 0, ARG_SIZE, offsetof(struct collect, recordings_size), "SIZE",
     "how much --recordings may hold; the oldest are removed (1G)"},
    {0},
};

static const struct arg_set collect_set = {"Where", collect_args};
static const struct arg_set limit_set = {"Limits", limit_args};
static const struct arg_set *const collect_sets[] = {&collect_set, &limit_set, NULL};

enum { TIDY_EVERY_S = 600, MERGE_EVERY_S = 120, ADDRESS_MAX = 128 };

static int wrong(const char *what, const char *why)
{
    complain("collect", what, why);
    return 2;
}

/* ---- options */

/* "127.0.0.1:4040", "[::1]:4040", "localhost:4040". */
static int read_listen(const char *text, char address[ADDRESS_MAX], uint16_t *ret_port)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    uint64_t port;
    if (!colon || !len || len >= ADDRESS_MAX || parse_u64(colon + 1, 0, 65535, &port) < 0)
        return -EINVAL;
    if (text[0] == '[' && text[len - 1] == ']')
        snprintf(address, ADDRESS_MAX, "%.*s", (int)len - 2, text + 1);
    else
        snprintf(address, ADDRESS_MAX, "%.*s", (int)len, text);
    if (strcmp(address, "localhost") == 0)
        strcpy(address, "127.0.0.1");
    *ret_port = (uint16_t)port;
    uint8_t bytes[16];
    return inet_pton(AF_INET, address, bytes) == 1 || inet_pton(AF_INET6, address, bytes) == 1
               ? 0
               : -EINVAL;
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

static bool is_name(const char *text, size_t len)
{
    bool ok = len > 0 && len <= TENANT_MAX;
    for (size_t i = 0; i < len && ok; i++)
        ok = isalnum((unsigned char)text[i]) || strchr("._-", text[i]);
    return ok;
}

static int add_tenant(struct collector *c, const char *name, size_t len, const char *token)
{
    struct tenant t = {.credit = COLLECTOR_BURST * (double)c->limits.rate,
                       .credit_at_ns = now_ns()};
    snprintf(t.name, sizeof(t.name), "%.*s", (int)len, name);
    t.token = token ? strdup(token) : NULL;
    if ((token && !t.token) || vec_push(&c->tenants, t) < 0)
        return complain_errno("collect", "--token", -ENOMEM);
    return 0;
}

/* The message does not repeat what is refused, because it may be a token. */
static int add_token(struct collector *c, const char *text)
{
    const char *equals = strchr(text, '=');
    size_t len = equals ? (size_t)(equals - text) : 0;
    if (!equals)
        return wrong("--token", "not TENANT=TOKEN: a tenant's name must be in front of its token");
    if (!is_name(text, len))
        return wrong("--token", "a tenant's name consists of letters, digits, . _ and -");
    if (!equals[1])
        return wrong("--token", "an empty token");
    return add_tenant(c, text, len, equals + 1);
}

static int each_token(struct collector *c, char *text, const char *separators)
{
    int status = 0;
    char *rest;
    for (char *t = strtok_r(text, separators, &rest); t && status == 0;
         t = strtok_r(NULL, separators, &rest)) {
        if (t[0] != '@') {
            status = add_token(c, t);
            continue;
        }
        _cleanup_free_ uint8_t *bytes = NULL;
        size_t len;
        int r = file_read_path(t + 1, 1 << 20, &bytes, &len);
        if (r < 0)
            return complain_errno(t + 1, "cannot read", r);
        status = each_token(c, (char *)bytes, "\r\n");
    }
    return status;
}

static int read_tokens(struct collector *c, const char *text)
{
    _cleanup_free_ char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        return complain_errno("collect", "--token", -ENOMEM);
    int status = copy ? each_token(c, copy, ",") : 0;
    if (status)
        return status;
    if (text && !c->tenants.len)
        return wrong("--token", "no TENANT=TOKEN in it");
    c->open = c->tenants.len == 0;
    return c->open ? add_tenant(c, "default", strlen("default"), NULL) : 0;
}

static int read_keep(const char *text, struct store_keep *keep)
{
    *keep = store_keep_default;
    for (int i = 0; text && i < STORE_RESOLUTIONS; i++) {
        const char *comma = strchr(text, ',');
        size_t len = comma ? (size_t)(comma - text) : strlen(text);
        char one[32];
        uint64_t ns;
        if (len >= sizeof(one) || !comma != (i == STORE_RESOLUTIONS - 1))
            return -EINVAL;
        snprintf(one, sizeof(one), "%.*s", (int)len, text);
        if (parse_duration(one, 0, &ns) < 0)
            return -EINVAL;
        keep->seconds[i] = (int64_t)(ns / NS_PER_SECOND);
        if (keep->seconds[i] < 3600 || (i && keep->seconds[i] < keep->seconds[i - 1]))
            return -EINVAL;
        text = comma ? comma + 1 : NULL;
    }
    return 0;
}

/* ---- running */

static void tidy(struct collector *c)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    int64_t now_s = (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_SECOND);
    int r = store_tidy(c->store, &c->keep, now_s, &why);
    if (r < 0)
        complain(c->store_url, "cannot remove what is old", why.len ? buf_str(&why) : strerror(-r));
}

static void merge(struct collector *c)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    int r = store_merge(c->store, &why);
    /* Senders hear of a full disk or a server that is down, and merging can wait. */
    if (r < 0 && r != -EBUSY && r != -ENOSPC)
        complain(c->store_url, "cannot merge what is new", why.len ? buf_str(&why) : strerror(-r));
}

static void wait_for_the_end(struct collector *c, const sigset_t *signals)
{
    struct timespec every = {.tv_sec = MERGE_EVERY_S};
    unsigned round = 0;
    do {
        merge(c);
        if (round++ % (TIDY_EVERY_S / MERGE_EVERY_S) == 0)
            tidy(c);
    } while (sigtimedwait(signals, NULL, &every) < 0 && (errno == EAGAIN || errno == EINTR));
}

static int serve(struct collector *c, const char *address, uint16_t port)
{
    static const char sqlite[] = "sqlite:";
    bool is_file = strncmp(c->store_url, sqlite, strlen(sqlite)) == 0;
    _cleanup_free_ char *file = strdup(is_file ? c->store_url + strlen(sqlite) : "/var/tmp/x");
    if (!file)
        return complain_errno("collect", "cannot start", -ENOMEM);
    struct intake_options options = {.address = address,
                                     .port = port,
                                     .body_max = c->limits.body,
                                     .folder = dirname(file),
                                     .admit = collector_admit,
                                     .answer = collector_answer,
                                     .context = c};
    struct intake *in;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int r = intake_start(&in, &options, &port);
    if (r < 0)
        return complain_errno(address, "cannot listen", r);
    printf(strchr(address, ':') ? "http://[%s]:%u/\n" : "http://%s:%u/\n", address, port);
    fflush(stdout);
    wait_for_the_end(c, &signals);
    intake_stop(in);
    return 0;
}

static int run(struct collector *c, const struct collect *o)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    char address[ADDRESS_MAX];
    uint16_t port;
    const char *listen = o->listen ? o->listen : "127.0.0.1:4040";
    if (read_listen(listen, address, &port) < 0)
        return wrong("--listen takes ADDRESS:PORT, an address in numbers", listen);
    int status = read_tokens(c, o->tokens);
    if (status)
        return status;
    if (c->open && !is_loopback(address))
        return wrong("--listen: other machines can reach this address; --token TENANT=TOKEN says "
                     "who may",
                     listen);
    int r = kept_open(&c->kept);
    if (r < 0)
        return complain_errno(o->recordings, "cannot keep recordings there", r);
    r = store_open(&c->store, o->store, true, &why);
    if (r == -EINVAL)
        return wrong("--store", buf_str(&why));
    if (r < 0)
        return complain(o->store, "cannot open", why.len ? buf_str(&why) : strerror(-r));
    return serve(c, address, port);
}

static void report_not_kept(const char *folder, int error)
{
    complain_errno(folder, "cannot keep a recording (counted in /metrics)", error);
}

static void tenant_release(struct tenant *t)
{
    free(t->token);
    map_release(&t->series);
}

static void release(struct collector *c)
{
    store_close(c->store);
    for (size_t i = 0; i < c->tenants.len; i++)
        tenant_release(&c->tenants.data[i]);
    vec_release(&c->tenants);
    pthread_mutex_destroy(&c->credit);
    pthread_mutex_destroy(&c->room.lock);
    pthread_cond_destroy(&c->room.freed);
    pthread_mutex_destroy(&c->admitting);
    pthread_mutex_destroy(&c->asking);
    pthread_mutex_destroy(&c->kept.lock);
}

static int cmd_collect(const struct command *self, int argc, char **argv)
{
    struct collect options = {
        .max_upload = 32 << 20, .rate = 200, .max_series = 100000, .recordings_size = 1 << 30};
    struct collect *limits = &options;
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({&collect_set, &options}, {&limit_set, limits}), argc, argv,
                    &operands, &status))
        return status;
    if (!options.store)
        return wrong("--store URL is missing",
                     "--store sqlite:FILE or clickhouse://HOST:PORT/DATABASE");
    struct collector c = {
        .store_url = options.store,
        .not_kept = report_not_kept,
        .kept = {.folder = options.recordings, .size_max = options.recordings_size},
        .limits = {.body = options.max_upload,
                   .rate = options.rate,
                   .labels = 32,
                   .text = 512,
                   .series = options.max_series,
                   .reading = reading_default_limits}};
    pthread_mutex_init(&c.credit, NULL);
    pthread_mutex_init(&c.room.lock, NULL);
    pthread_cond_init(&c.room.freed, NULL);
    pthread_mutex_init(&c.admitting, NULL);
    pthread_mutex_init(&c.asking, NULL);
    pthread_mutex_init(&c.kept.lock, NULL);
    if (read_keep(options.keep, &c.keep) < 0)
        status =
            wrong("--keep takes three times of an hour or more, the longest last, as 2d,30d,400d",
                  options.keep);
    else
        status = run(&c, &options);
    release(&c);
    return status;
}

const struct command command_collect = {
    .name = "collect",
    .run = cmd_collect,
    .operands = "",
    .summary = "collect and keep the profiles of many machines, for jvmscope fleet",
    .related = "host fleet convert",
    .description =
        "Use it on one machine, to which the others send their profiles.\n\n"
        "Accepts recordings and profiles over HTTP and keeps them in a store: each sample with "
        "its time, stack, service, version, host, instance and labels, and the latencies of "
        "requests. *jvmscope fleet* queries it. An upload that is sent twice counts once, and "
        "an upload is on the disk before it is acknowledged, so a crash at any moment neither "
        "loses nor duplicates anything.\n\n"
        "doc/fleet.md describes paths, answers and tables.",
    .caveats = "Without *--token* it listens on loopback addresses only. An upload that exceeds a "
               "limit is answered with 413 or 429 and the name of the limit.",
    .examples = "  jvmscope collect --store sqlite:fleet.db\n"
                "  curl --data-binary @app.jfr "
                "'http://127.0.0.1:4040/v1/upload?service=shop&version=1.8&host=web1'\n"
                "  jvmscope collect --store sqlite:fleet.db --listen 0.0.0.0:4040 --token "
                "shop=SECRET\n",
    .sets = collect_sets,
};
