/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi_agent.h"

long last_wait_timeout = -1, last_waited = -1, sleeps = -1, slept = -1;
jobjectID last_contended, last_waited_on, watched;
long watched_counts[64];
long monitor_owner_found, monitor_traces, monitor_parties;
JNIEnv *monitor_wanted_owner;
static long raw_listed, raw_order, raw_parties;
static JVMPI_RawMonitor contended;
static JNIEnv *volatile contender_env, *raw_owner;

void on_monitor(JVMPI_Event *e, int type)
{
    switch (type) {
    case JVMPI_EVENT_MONITOR_WAIT:
        if (!e->u.monitor_wait.object)
            sleeps = (long)e->u.monitor_wait.timeout;
        last_wait_timeout = (long)e->u.monitor_wait.timeout;
        last_waited_on = e->u.monitor_wait.object;
        break;
    case JVMPI_EVENT_MONITOR_WAITED:
        if (!e->u.monitor_wait.object)
            slept = (long)e->u.monitor_wait.timeout;
        last_waited = (long)e->u.monitor_wait.timeout;
        break;
    case JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTER:
    case JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTERED:
    case JVMPI_EVENT_RAW_MONITOR_CONTENDED_EXIT:
        if (strcmp(e->u.raw_monitor.name, "contended") != 0)
            fault("an event of a raw monitor of another name");
        __sync_fetch_and_add(&raw_order, 1);
        break;
    default:
        last_contended = e->u.monitor.object;
        if (e->u.monitor.object == watched)
            __sync_fetch_and_add(&watched_counts[type], 1);
    }
}

static unsigned be32(const unsigned char *p)
{
    return (unsigned)p[0] << 24 | (unsigned)p[1] << 16 | (unsigned)p[2] << 8 | p[3];
}

void on_monitor_dump(JVMPI_Event *e)
{
    unsigned char *p = (unsigned char *)e->u.monitor_dump.begin,
                  *end = (unsigned char *)e->u.monitor_dump.end;
    monitor_traces = e->u.monitor_dump.num_traces;
    while (p < end) {
        int type = *p++, list;
        void *id, *owner, *name = NULL;
        if (type == JVMPI_MONITOR_RAW) {
            memcpy(&name, p, sizeof(name));
            p += sizeof(void *);
        } else if (type != JVMPI_MONITOR_JAVA)
            fault("a monitor dump's record of no known type");
        memcpy(&id, p, sizeof(id));
        memcpy(&owner, p + sizeof(id), sizeof(owner));
        p += 2 * sizeof(void *);
        if (id == dump_wanted && owner == monitor_wanted_owner && be32(p) == 1)
            monitor_owner_found++;
        if (id == dump_wanted)
            monitor_parties += be32(p) * 1000000L;
        p += 4;
        for (list = 0; list < 2; list++) {
            unsigned n = be32(p);
            if (id == dump_wanted && list == 0 && n == 1)
                monitor_owner_found += 10;
            if (id == dump_wanted)
                monitor_parties += (list ? 1 : 1000) * (long)n;
            if (name && id == contended && n == 1) {
                void *party;
                memcpy(&party, p + 4, sizeof(party));
                raw_parties += party == contender_env ? (list ? 100 : 10) : 1000;
            }
            p += 4 + n * sizeof(void *);
        }
        raw_listed += name && id == contended;
        if (name && id == contended && owner == raw_owner)
            raw_parties += strcmp((char *)name, "contended") ? 5000 : 1;
    }
    if (p != end)
        fault("a monitor dump does not end at its end");
}

static void *waiter(void *unused)
{
    JNIEnv *env;
    (*java_vm)->AttachCurrentThread(java_vm, (void **)&env, NULL);
    jvmpi->RawMonitorEnter(contended);
    contender_env = env;
    jvmpi->RawMonitorWait(contended, 0);
    jvmpi->RawMonitorExit(contended);
    (*java_vm)->DetachCurrentThread(java_vm);
    return NULL;
}

static void *contender(void *unused)
{
    JNIEnv *env;
    (*java_vm)->AttachCurrentThread(java_vm, (void **)&env, NULL);
    contender_env = env;
    jvmpi->RawMonitorEnter(contended);
    jvmpi->RawMonitorNotifyAll(contended);
    jvmpi->RawMonitorExit(contended);
    (*java_vm)->DetachCurrentThread(java_vm);
    return NULL;
}

long raw_monitors(const char *name)
{
    pthread_t t;
    long before = raw_order;
    int i;
    contended = jvmpi->RawMonitorCreate((char *)name);
    jvmpi->RawMonitorEnter(contended);
    jvmpi->RawMonitorEnter(contended);
    pthread_create(&t, NULL, contender, NULL);
    for (i = 0; i < 500 && *name != '_' && raw_order == before; i++)
        pause_ms(10);
    pause_ms(100);
    jvmpi->RawMonitorExit(contended);
    jvmpi->RawMonitorWait(contended, 5000); /* until the contender notifies */
    jvmpi->RawMonitorExit(contended);
    pthread_join(t, NULL);
    jvmpi->RawMonitorEnter(contended);
    jvmpi->RawMonitorWait(contended, 50);
    jvmpi->RawMonitorExit(contended);
    jvmpi->RawMonitorExit(contended); /* one exit too many must be ignored */
    jvmpi->RawMonitorDestroy(contended);
    jvmpi->RawMonitorEnter(contended); /* destroyed; must be ignored */
    return raw_order - before;
}

/*
 * Returns what MONITOR_DUMP says about a raw monitor that we own: 1, and 10 when the contender
 * wants to enter, 100 when it waits.
 */
long raw_dump(int waits)
{
    pthread_t t;
    JNIEnv *env = NULL;
    int i;
    (*java_vm)->GetEnv(java_vm, (void **)&env, JNI_VERSION_1_2);
    contended = jvmpi->RawMonitorCreate("contended");
    raw_parties = 0;
    raw_owner = waits ? NULL : env;
    if (!waits)
        jvmpi->RawMonitorEnter(contended);
    contender_env = NULL;
    pthread_create(&t, NULL, waits ? waiter : contender, NULL);
    for (i = 0; i < 500 && !contender_env; i++)
        pause_ms(10);
    for (i = 0; i < 500 && raw_parties % 10000 / 10 == 0; i++) {
        pause_ms(10);
        raw_parties = 0;
        jvmpi->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL);
    }
    if (waits) {
        jvmpi->RawMonitorEnter(contended);
        jvmpi->RawMonitorNotifyAll(contended);
    }
    jvmpi->RawMonitorExit(contended);
    pthread_join(t, NULL);
    jvmpi->RawMonitorDestroy(contended);
    return raw_parties;
}

static volatile int inside_contended;

static void *enterer(void *unused)
{
    JNIEnv *env;
    (*java_vm)->AttachCurrentThread(java_vm, (void **)&env, NULL);
    jvmpi->RawMonitorEnter(contended);
    inside_contended = 1;
    jvmpi->RawMonitorNotifyAll(contended);
    jvmpi->RawMonitorExit(contended);
    (*java_vm)->DetachCurrentThread(java_vm);
    return NULL;
}

/*
 * Returns a digit for each rule: after two entries and one exit it is still held; after the last
 * exit another thread enters; notify wakes; a wait takes its time; a destroyed monitor is ignored.
 */
long raw_rules(void)
{
    pthread_t t;
    long began, r = 0;
    int i;
    contended = jvmpi->RawMonitorCreate("rules");
    inside_contended = 0;
    jvmpi->RawMonitorEnter(contended);
    jvmpi->RawMonitorEnter(contended);
    pthread_create(&t, NULL, enterer, NULL);
    pause_ms(50);
    jvmpi->RawMonitorExit(contended);
    pause_ms(50);
    r += inside_contended ? 0 : 1;
    began = now_ms();
    jvmpi->RawMonitorWait(contended, 20000); /* lets the other thread enter, which notifies */
    r += now_ms() - began < 15000 ? 10 : 0;
    r += inside_contended ? 100 : 0;
    began = now_ms();
    jvmpi->RawMonitorWait(contended, 60);
    r += now_ms() - began >= 59 ? 1000 : 0;
    jvmpi->RawMonitorExit(contended);
    pthread_join(t, NULL);
    inside_contended = 0;
    pthread_create(&t, NULL, enterer, NULL);
    for (i = 0; i < 300 && !inside_contended; i++)
        pause_ms(10);
    r += inside_contended ? 10000 : 0; /* free after the last exit */
    if (!inside_contended)
        pthread_detach(t);
    else
        pthread_join(t, NULL);
    raw_listed = 0;
    jvmpi->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL);
    r += raw_listed == 1 ? 100000 : 0;
    jvmpi->RawMonitorDestroy(contended);
    raw_listed = 0;
    jvmpi->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL);
    r += raw_listed == 0 ? 1000000 : 0;
    return r;
}
