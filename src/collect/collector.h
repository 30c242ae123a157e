/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's state, and how it answers requests. */
#pragma once

#include "base/vec.h"
#include "collect/kept.h"
#include "fleet/reading.h"
#include "fleet/store.h"
#include "serve/intake.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * COLLECTOR_BURST: a tenant may send as many uploads at once as its rate allows in this many
 * seconds. COLLECTOR_SHARES: the number of shares into which the memory for reading is divided, and
 * therefore the number of uploads that are read at once.
 */
enum { TENANT_MAX = 64, COLLECTOR_BURST = 10, COLLECTOR_SHARES = 2 };

/* A tenant and the state of its limits. */
struct tenant {
    char name[TENANT_MAX + 1];
    char *token;   /* NULL: none is needed */
    double credit; /* uploads that it may send now */
    uint64_t credit_at_ns;
    struct map series;       /* the hashes of its series */
    uint64_t series_read_ns; /* when they were read from the store; 0: not yet */
};

struct collector_limits {
    uint64_t body;   /* bytes of an upload */
    uint64_t rate;   /* uploads per second and tenant */
    uint64_t labels; /* of an upload, besides service, version, host and instance */
    uint64_t text;   /* bytes of a label's value */
    uint64_t series; /* of a tenant */
    struct reading_limits reading;
};

/* What has happened since the start, for /metrics. */
struct collector_counts {
    atomic_ullong uploads, repeated, damaged, too_large, limited, failed, shifted, samples, bytes,
        not_kept;
};

/*
 * The memory that uploads may take while they are read and stored, in shares. An upload that needs
 * all shares takes precedence over those that need one, so that it is not kept waiting forever.
 */
struct reading_room {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    unsigned taken, want_all;
};

struct collector {
    struct store *store;
    const char *store_url;
    VEC(struct tenant) tenants; /* one without a token when no token is required */
    bool open;                  /* no token is required; only when listening on loopback */
    struct collector_limits limits;
    struct store_keep keep;
    struct collector_counts counts;
    pthread_mutex_t credit; /* guards the tenants' state */
    struct kept_uploads kept;
    /* Reports the first recording that cannot be kept, with a negative errno. */
    void (*not_kept)(const char *folder, int error);
    struct reading_room room;
    pthread_mutex_t admitting; /* guards the tenants' series */
    /* allows only one question to be answered at a time, so that memory is bounded */
    pthread_mutex_t asking;
};

/* The functions admit and answer of struct intake_options; their context is the collector. */
int collector_admit(void *collector, const struct intake_request *q, struct intake_reply *reply,
                    const void **ret_tenant);
int collector_answer(void *collector, const struct intake_request *q, struct intake_reply *reply);

/* An upload: the parts of a request that say whose profile it is. */
struct upload_origin {
    struct fleet_origin origin;
    VEC(struct fleet_label) labels;
    int64_t from_ns;      /* when the profile began, if it does not say so itself; 0: not given */
    uint64_t interval_ns; /* as in struct fleet_reading */
    int64_t sent_s;       /* the sender's clock when it sent; 0: not given */
    enum fleet_format format;
    const char *content_type;
    int64_t after_ns, until_ns; /* as in struct fleet_reading */
    const char *id;             /* NULL: by content */
    struct arena arena;
};

/*
 * Returns 0 if the tenant may have the series of this origin, -E2BIG with the reason in why if it
 * has too many already, or the error of reading the store.
 */
int collector_admit_series(struct collector *c, const struct fleet_origin *o,
                           struct buf *why) must_check;
/* Answers POST /v1/upload. Like the functions that follow, returns the HTTP status. */
int collector_upload(struct collector *c, const struct tenant *t, const struct intake_request *q,
                     struct intake_reply *reply);
/* Answers POST /ingest, /push.v1.PusherService/Push and OTLP's path (protocols.c). */
int collector_ingest(struct collector *c, const struct tenant *t, const struct intake_request *q,
                     struct intake_reply *reply);
int collector_push(struct collector *c, const struct tenant *t, const struct intake_request *q,
                   struct intake_reply *reply);
int collector_otlp(struct collector *c, const struct tenant *t, const struct intake_request *q,
                   struct intake_reply *reply);
/* Answers POST /querier.v1.QuerierService/METHOD (querier.c). */
int collector_query(struct collector *c, const struct tenant *t, const struct intake_request *q,
                    const char *method, struct intake_reply *reply);
/* Returns what is wrong with the characters of a name, for a message, or NULL. */
const char *upload_wrong_characters(struct str s);
/*
 * Sets a label, or the member of the origin for which a key such as "service.name" stands. Drops a
 * label whose key begins with "__". Copies the texts into o->arena. Returns 0 or -ENOMEM.
 */
int upload_origin_set(struct upload_origin *o, const char *key, const char *value) must_check;
/*
 * Reads the file at path as an upload and stores it. content: the hash that names the upload unless
 * from->id does; for a form, the hash of its query, to which the parts are added. Returns the HTTP
 * status.
 */
int collector_take(struct collector *c, struct upload_origin *from, const char *path,
                   const struct fleet_hash *content, struct intake_reply *reply);
/*
 * Computes the hash of n texts followed by the contents of a file; fd -1: no file. Returns 0 or a
 * negative errno.
 */
int collector_hash(int fd, const char *const *texts, size_t n, struct fleet_hash *ret) must_check;
void upload_origin_release(struct upload_origin *o);
