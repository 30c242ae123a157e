/* SPDX-License-Identifier: Apache-2.0 */
/* fleet: queries a store of profiles, or the collector that keeps it. */
#include "cli/fleet/fleet.h"

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/fleet/origin.h"
#include "cli/fleet/send.h"
#include "fleet/ask.h"

#include <errno.h>
#include <string.h>

static const struct arg where_args[] = {
    {"--store", 0, ARG_TEXT, offsetof(struct fleet_options, store), "URL",
     "read this store directly: sqlite:FILE or clickhouse://HOST:PORT/DATABASE"},
    {"--collector", 0, ARG_TEXT, offsetof(struct fleet_options, collector), "URL",
     "ask this collector: http://HOST:4040"},
    {"--token", 0, ARG_TEXT, offsetof(struct fleet_options, token), "TOKEN",
     "the collector's token, or @FILE to read it from a file"},
    {"--tenant", 0, ARG_TEXT, offsetof(struct fleet_options, tenant), "NAME",
     "only this tenant of a store that has several"},
    {0},
};

static const struct arg choice_args[] = {
    {"--service", 0, ARG_LIST, offsetof(struct fleet_options, service), "NAME",
     "only this service; * and ? match any characters, and commas separate names, here and below"},
    {"--version", 0, ARG_LIST, offsetof(struct fleet_options, version), "NAME",
     "only this version"},
    {"--host", 0, ARG_LIST, offsetof(struct fleet_options, host), "NAME", "only this host"},
    {"--instance", 0, ARG_LIST, offsetof(struct fleet_options, instance), "NAME",
     "only this instance of a service"},
    {"--label", 0, ARG_LIST, offsetof(struct fleet_options, labels), "KEY=VALUE",
     "only profiles with this label"},
    {"--from", 0, ARG_TEXT, offsetof(struct fleet_options, from), "WHEN",
     "from this time on: 2026-11-24T10:30, seconds since 1970, or 90m (90 minutes ago)"},
    {"--to", 0, ARG_TEXT, offsetof(struct fleet_options, to), "WHEN", "up to this time"},
    {"--request", 0, ARG_LIST, offsetof(struct fleet_options, request), "NAME",
     "only work for requests of this name"},
    {0},
};

static const struct arg shown_args[] = {
    {"--json", 0, ARG_FLAG, offsetof(struct fleet_options, json), NULL, "print JSON"},
    {"--limit", 'n', ARG_COUNT, offsetof(struct fleet_options, limit), "N",
     "rows of the table (30; JSON: all)"},
    {0},
};

static const struct arg metric_args[] = {
    {"--metric", 0, ARG_TEXT, offsetof(struct fleet_options, metric), "NAME",
     "count cpu (or samples), wall, allocations, locks, times, live, latency, latency_slow or "
     "latency_typical (cpu)"},
    {0},
};

static const struct arg top_args[] = {
    {"--price", 0, ARG_TEXT, offsetof(struct fleet_options, price), "AMOUNT",
     "the price of a CPU hour; adds the cost of each service"},
    {"--method", 0, ARG_LIST, offsetof(struct fleet_options, method), "NAME",
     "only methods of this name, in all chosen services"},
    {0},
};

static const struct arg diff_args[] = {
    {"--base", 0, ARG_LIST, offsetof(struct fleet_options, base), "KEY=VALUE",
     "compare with this version, host, time or label: version=1.7, host=NAME, from=WHEN, to=WHEN, "
     "LABEL=VALUE"},
    {0},
};

static const struct arg query_args[] = {
    {"--method", 0, ARG_LIST, offsetof(struct fleet_options, method), "NAME",
     "the methods: a whole name, or a pattern with * and ?"},
    {"--price", 0, ARG_TEXT, offsetof(struct fleet_options, price), "AMOUNT",
     "the price of a CPU hour; adds the cost of each row"},
    {0},
};

static const struct arg_set where_set = {"Where", where_args};
static const struct arg_set choice_set = {"What is chosen", choice_args};
static const struct arg json_args[] = {
    {"--json", 0, ARG_FLAG, offsetof(struct fleet_options, json), NULL, "print JSON"},
    {0},
};

static const struct arg_set json_set = {"What is shown", json_args};
static const struct arg_set shown_set = {"What is shown", shown_args};
static const struct arg_set metric_set = {"What is counted", metric_args};
static const struct arg_set top_set = {"Cost and methods", top_args};
static const struct arg_set query_set = {"Methods and cost", query_args};
static const struct arg_set diff_set = {"What is compared", diff_args};

static const struct arg_set *const services_sets[] = {&where_set, &choice_set, &shown_set, NULL};
static const struct arg_set *const top_sets_of_fleet[] = {&where_set, &choice_set, &metric_set,
                                                          &top_set,   &shown_set,  NULL};
static const struct arg_set *const flame_sets[] = {&where_set, &choice_set, &metric_set, &json_set,
                                                   NULL};
static const struct arg_set *const diff_sets_of_fleet[] = {&where_set, &choice_set, &metric_set,
                                                           &diff_set,  &shown_set,  NULL};

static const struct arg_set *const query_sets[] = {&where_set, &choice_set, &metric_set,
                                                   &query_set, &shown_set,  NULL};

/* ---- querying */

struct asking {
    struct ask_param params[FLEET_PARAMS];
    size_t n;
    char texts[2][24];
    char *labels, *base; /* copies, which are cut at commas */
};

static void asking_release(struct asking *a)
{
    free(a->labels);
    free(a->base);
}

static int add(struct asking *a, const char *key, const char *value)
{
    if (!value)
        return 0;
    if (a->n == FLEET_PARAMS)
        return complain("fleet", key, "too many values");
    a->params[a->n++] = (struct ask_param){key, value};
    return 0;
}

/* A time in seconds since 1970, so that the collector's time zone does not matter. */
static int add_time(struct asking *a, const char *key, const char *text, char to[24])
{
    int64_t now_s = (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_SECOND), t;
    if (!text)
        return 0;
    if (ask_time(text, now_s, &t) < 0) {
        complain("fleet", key[0] == 'f' ? "--from" : "--to",
                 "not a time: 2026-11-24T10:30, seconds since 1970, or 90m (that long ago)");
        return 2;
    }
    snprintf(to, 24, "%lld", (long long)t);
    return add(a, key, to);
}

static int add_list(struct asking *a, const char *key, const char *list, char **copy)
{
    char *rest;
    int status = 0;
    if (!list)
        return 0;
    *copy = strdup(list);
    if (!*copy)
        return complain_errno("fleet", key, -ENOMEM);
    for (char *t = strtok_r(*copy, ",", &rest); t && status == 0; t = strtok_r(NULL, ",", &rest))
        status = add(a, key, t);
    return status;
}

static int make_params(struct asking *a, const struct fleet_options *o, const char *limit)
{
    const char *const texts[][2] = {{"tenant", o->tenant},     {"service", o->service},
                                    {"version", o->version},   {"host", o->host},
                                    {"instance", o->instance}, {"request", o->request},
                                    {"metric", o->metric},     {"price", o->price},
                                    {"method", o->method},     {"limit", limit}};
    int status = 0;
    for (size_t i = 0; i < ARRAY_SIZE(texts) && status == 0; i++)
        status = add(a, texts[i][0], texts[i][1]);
    if (status == 0)
        status = add_time(a, "from", o->from, a->texts[0]);
    if (status == 0)
        status = add_time(a, "to", o->to, a->texts[1]);
    if (status == 0)
        status = add_list(a, "label", o->labels, &a->labels);
    return status ? status : add_list(a, "base", o->base, &a->base);
}

/* Checks the values of all options before opening a store or connecting to a collector. */
static int check(const char *command, const struct asking *a)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    int r = ask_check(a->params, a->n, &why);
    if (r < 0) {
        char option[256];
        snprintf(option, sizeof(option), "--%s", why.len ? buf_str(&why) : strerror(-r));
        complain(command, option, NULL);
        return 2;
    }
    return 0;
}

static int ask_store(const struct command *self, const struct fleet_options *o,
                     const struct asking *a, struct buf *out)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    _cleanup_(store_closep) struct store *s = NULL;
    int r = store_open(&s, o->store, false, &why);
    if (r == -EINVAL) {
        complain(self->name, "--store", buf_str(&why));
        return 2;
    }
    if (r < 0)
        return complain(o->store, "cannot open", why.len ? buf_str(&why) : strerror(-r));
    r = ask_answer(s, command_word(self), NULL, a->params, a->n, NULL, out, &why);
    if (r == -EINVAL && why.len) {
        char option[4096];
        snprintf(option, sizeof(option), "--%s", buf_str(&why));
        complain(self->name, option, NULL);
        return 2;
    }
    return r == 0 ? 0 : complain(o->store, "cannot answer", why.len ? buf_str(&why) : strerror(-r));
}

enum { ROWS = 30 };

static int ask_collector(const struct fleet_options *o, const char *verb, const struct asking *a,
                         struct buf *out)
{
    _cleanup_(buf_release) struct buf path = BUF(1 << 20);
    _cleanup_(sender_release) struct sender s = {.url = NULL};
    int status = sender_open(&s, o->collector, o->token);
    if (status)
        return status;
    buf_printf(&path, "/v1/fleet/%s", verb);
    for (size_t i = 0; i < a->n; i++) {
        buf_printf(&path, "%c%s=", i ? '&' : '?', a->params[i].key);
        vm_origin_escape(&path, a->params[i].value);
    }
    status = sender_get(&s, buf_str(&path), out);
    while (out->len && out->data[out->len - 1] == '\n')
        out->len--;
    return status;
}

static int cmd_question(const struct command *self, int argc, char **argv)
{
    struct fleet_options o = {0};
    _cleanup_(asking_release) struct asking a = {.n = 0};
    _cleanup_(buf_release) struct buf out = BUF(INT32_MAX);
    struct operands operands;
    char limit[24];
    int status;
    if (!args_parse(self, ARGS({NULL, &o}), argc, argv, &operands, &status))
        return status;
    const char *verb = command_word(self);
    if (o.metric)
        o.metric = ask_metric_name(o.metric);
    snprintf(limit, sizeof(limit), "%llu", (unsigned long long)o.limit);
    status = make_params(&a, &o, o.json && o.limit ? limit : NULL);
    if (status)
        return status;
    if (!o.store == !o.collector) {
        complain(self->name, "one of --store and --collector must be given",
                 "--store sqlite:FILE, or --collector http://HOST:4040");
        return 2;
    }
    if (o.token && o.store) {
        complain(self->name, "--token has no effect with --store", "a collector takes it");
        return 2;
    }
    if (o.price && o.metric && strcmp(o.metric, "cpu") != 0) {
        complain(self->name, "--price has no effect with this --metric",
                 "it is the price of CPU time, which --metric cpu counts");
        return 2;
    }
    if (strcmp(verb, "diff") == 0 && !o.base) {
        complain(self->name, "--base is missing", "--base version=1.7, host=NAME, from=WHEN ...");
        return 2;
    }
    if (strcmp(verb, "query") == 0 && !o.method) {
        complain(self->name, "--method is missing", "--method 'java.util.regex.*'");
        return 2;
    }
    if (o.collector && !sender_is_url(o.collector)) {
        complain(self->name, "--collector takes an address, http://HOST:4040", o.collector);
        return 2;
    }
    status = check(self->name, &a);
    if (status)
        return status;
    status = o.store ? ask_store(self, &o, &a, &out) : ask_collector(&o, verb, &a, &out);
    if (status)
        return status;
    o.limit = o.limit ? o.limit : ROWS;
    return fleet_print(verb, &out, &o);
}

static const struct command *const fleet_verbs[] = {
    &(const struct command){
        .name = "fleet services",
        .run = cmd_question,
        .summary = "list the services and their versions, with the times of their profiles",
        .description =
            "Prints a row for each service and version: how many hosts and instances sent "
            "profiles, and when the first and the last profile was taken.",
        .examples = "  jvmscope fleet services --store sqlite:fleet.db\n",
        .sets = services_sets,
    },
    &(const struct command){
        .name = "fleet top",
        .run = cmd_question,
        .summary = "rank the services by cost, or the methods of one",
        .description =
            "Ranks services and their versions by CPU time, or by cost when *--price* is given. "
            "With *--service* or *--method* it ranks methods: *self* counts the samples in which "
            "the method itself ran, *total* those in which it or a method that it called ran. "
            "*--method* searches all services, and so shows which of them spend time in a method.",
        .examples = "  jvmscope fleet top --store sqlite:fleet.db --from 1h\n"
                    "  jvmscope fleet top --store sqlite:fleet.db --service shop --version 1.8\n"
                    "  jvmscope fleet top --store sqlite:fleet.db --method 'java.util.regex.*'\n",
        .sets = top_sets_of_fleet,
    },
    &(const struct command){
        .name = "fleet flame",
        .run = cmd_question,
        .summary = "print the stacks of a selection, for a flame graph",
        .description =
            "Prints one collapsed stack per line, followed by its samples, bytes or nanoseconds. "
            "*jvmscope convert* turns them into a flame graph. *--json* prints them as a tree.",
        .examples =
            "  jvmscope fleet flame --store sqlite:fleet.db --service shop >shop.collapsed\n"
            "  jvmscope convert -o shop.html shop.collapsed\n",
        .sets = flame_sets,
    },
    &(const struct command){
        .name = "fleet diff",
        .run = cmd_question,
        .summary = "compare versions, hosts or times, and show what changed beyond chance",
        .description =
            "Compares the selection with the same selection of another version, host, time or "
            "label, which *--base* names. Lists the methods whose share of the whole changed by "
            "more than chance explains, each with an interval; the intervals of all methods "
            "together hold with 95 % confidence. Samples of one instance and one period resemble "
            "each other, so the error is estimated from the differences between instances and "
            "periods. When no method changed that much, the answer is \"no change\".",
        .examples = "  jvmscope fleet diff --store sqlite:fleet.db --service shop --version 1.8 "
                    "--base version=1.7\n"
                    "  jvmscope fleet diff --store sqlite:fleet.db --service shop --from 1h --base "
                    "from=25h,to=24h\n",
        .sets = diff_sets_of_fleet,
    },
    &(const struct command){
        .name = "fleet requests",
        .run = cmd_question,
        .summary = "show how often each request arrived and how long it took",
        .description =
            "Merges the latency histograms of all instances, so the quantiles are those of all "
            "requests, not means of quantiles. Their error is below 1 % (doc/fleet.md).",
        .examples = "  jvmscope fleet requests --store sqlite:fleet.db --service shop\n",
        .sets = services_sets,
    },
    &(const struct command){
        .name = "fleet vm",
        .run = cmd_question,
        .summary = "show what the VMs themselves did: collections, safepoints, memory, CPU",
        .description =
            "Prints a row for each service and version: the pauses for collections and the stops "
            "at safepoints, with the longest of each; the heap after collections, the resident "
            "memory, the threads and the CPU time of the process; and for how long its container "
            "was out of CPU. *jvmscope vm* shows more of a single recording.",
        .examples = "  jvmscope fleet vm --store sqlite:fleet.db --from 24h\n",
        .sets = services_sets,
    },
    &(const struct command){
        .name = "fleet findings",
        .run = cmd_question,
        .summary = "list what got slower with new versions",
        .description =
            "Compares each version that first appeared in the chosen time with the previous "
            "version of its service, and lists the methods whose share of the whole grew by more "
            "than chance explains. The new version is judged from its first profile on, the "
            "previous one over an equally long time before that and while both run. If nothing got "
            "slower, at most one answer in a hundred lists any method; that holds for all services "
            "and methods of an answer together.",
        .examples = "  jvmscope fleet findings --store sqlite:fleet.db --from 24h\n"
                    "  jvmscope fleet findings --store sqlite:fleet.db --service shop --metric "
                    "allocations\n",
        .sets = flame_sets,
    },
    &(const struct command){
        .name = "fleet query",
        .run = cmd_question,
        .summary = "search methods in all services: where they run, who calls them, at what cost",
        .description =
            "Prints the services and versions that spend time in the methods, and who calls them. "
            "*self* counts the samples in which the method itself ran, *total* those in which it "
            "or "
            "a method that it called ran. A method that calls itself counts once, for the caller "
            "of "
            "its innermost call.",
        .examples =
            "  jvmscope fleet query --store sqlite:fleet.db --method 'java.util.regex.*'\n"
            "  jvmscope fleet query --store sqlite:fleet.db --method 'java.util.HashMap.resize' "
            "--price 0.04\n",
        .sets = query_sets,
    },
    NULL,
};

const struct command command_fleet = {
    .name = "fleet",
    .verbs = fleet_verbs,
    .summary = "query the profiles of many machines: cost, flame graphs, differences",
    .related = "collect host diff report",
    .description =
        "Use it to find out what the programs of many machines spend their time on, and what a "
        "new version changed. It reads the store of *jvmscope collect*, directly or through the "
        "collector.",
    .caveats = "Profiles are samples: the shares of methods with few samples change by chance. The "
               "store holds only what was sent to it: times at which no *jvmscope host* or other "
               "sender ran on a machine are missing.",
};
