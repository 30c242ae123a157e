/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fleet/origin.h"

#include "base/file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENVIRONMENT_MAX = 4 << 20 };

static void set(char to[ORIGIN_TEXT], const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len && n < ORIGIN_TEXT - 1; i++)
        to[n++] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i];
    to[n] = 0;
}

void vm_origin_set(struct vm_origin *o, const char *key, const char *value)
{
    const struct {
        const char *key;
        char *to;
    } own[] = {{"service.name", o->service},
               {"service.version", o->version},
               {"host.name", o->host},
               {"service.instance.id", o->instance}};

    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        if (strcmp(key, own[i].key) == 0) {
            set(own[i].to, value, strlen(value));
            return;
        }
    }
    size_t at = 0;
    while (at < o->n_labels && strcmp(o->labels[at].key, key) != 0)
        at++;
    if (at == ORIGIN_LABELS || !*value)
        return;
    o->n_labels = MAX(o->n_labels, at + 1);
    set(o->labels[at].key, key, strlen(key));
    set(o->labels[at].value, value, strlen(value));
}

static int digit_of(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : (c | 32) - 'a' + 10;
}

/* "key=value,key=value", in which bytes may be percent-encoded ("%2C"). */
static void read_attributes(struct vm_origin *o, const char *text)
{
    while (*text) {
        char pair[2][ORIGIN_TEXT] = {"", ""};
        size_t len = strcspn(text, ","), n = 0;
        int part = 0;
        for (size_t i = 0; i < len; i++) {
            char c = text[i];
            if (c == '=' && part == 0) {
                part = 1;
                n = 0;
                continue;
            }
            if (c == '%' && i + 2 < len && isxdigit((unsigned char)text[i + 1]) &&
                isxdigit((unsigned char)text[i + 2])) {
                c = (char)(digit_of(text[i + 1]) << 4 | digit_of(text[i + 2]));
                i += 2;
            }
            if (n < ORIGIN_TEXT - 1 && c && !(n == 0 && c == ' '))
                pair[part][n++] = c;
        }
        if (part && pair[0][0])
            vm_origin_set(o, pair[0], pair[1]);
        text += len + (text[len] == ',');
    }
}

static const char *variable(const char *environment, size_t len, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = environment; at < environment + len; at += strlen(at) + 1)
        if (strncmp(at, name, n) == 0 && at[n] == '=' && at[n + 1])
            return at + n + 1;
    return NULL;
}

/* Reads the variables of an environment as /proc has it: ended by NUL bytes. */
static void vm_origin_of_environment(struct vm_origin *o, const char *environment, size_t len)
{
    /* Later rows take precedence. */
    static const char *const names[][2] = {
        {"NODE_NAME", "host.name"},
        {"K8S_NODE_NAME", "host.name"},
        {"POD_NAME", "k8s.pod.name"},
        {"K8S_POD_NAME", "k8s.pod.name"},
        {"POD_NAMESPACE", "k8s.namespace.name"},
        {"K8S_NAMESPACE", "k8s.namespace.name"},
        {"CONTAINER_NAME", "k8s.container.name"},
        {"AWS_REGION", "cloud.region"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *value = variable(environment, len, names[i][0]);
        if (value)
            vm_origin_set(o, names[i][1], value);
    }
    const char *pod = variable(environment, len, "POD_NAME");
    if (pod)
        vm_origin_set(o, "service.instance.id", pod);
    const char *attributes = variable(environment, len, "OTEL_RESOURCE_ATTRIBUTES");
    if (attributes)
        read_attributes(o, attributes);
    const char *service = variable(environment, len, "OTEL_SERVICE_NAME");
    if (service)
        vm_origin_set(o, "service.name", service);
}

/* Sets the service to the main class or the jar, without folders and the extension .jar. */
static void service_of_command(struct vm_origin *o, const char *command)
{
    size_t n = strcspn(command, " ");
    const char *end = command + n;
    for (const char *at = command; at < end; at++)
        if (*at == '/')
            command = at + 1;
    n = (size_t)(end - command);
    if (n > 4 && strncmp(end - 4, ".jar", 4) == 0)
        n -= 4;
    set(o->service, command, n);
}

void vm_origin_read(struct vm_origin *o, const struct vm *vm)
{
    _cleanup_free_ uint8_t *environment = NULL;
    char path[64], name[ORIGIN_TEXT] = "";
    size_t len = 0;
    *o = (struct vm_origin){.n_labels = 0};
    if (gethostname(name, sizeof(name) - 1) == 0)
        vm_origin_set(o, "host.name", name);
    if (vm->container_id)
        vm_origin_set(o, "container.id", vm->container_id);
    snprintf(path, sizeof(path), "/proc/%d/environ", vm->pid);
    if (file_read_path(path, ENVIRONMENT_MAX, &environment, &len) == 0)
        vm_origin_of_environment(o, (const char *)environment, len);
    if (!o->service[0] && vm->command)
        service_of_command(o, vm->command);
    if (!o->service[0])
        vm_origin_set(o, "service.name", "java");
    if (!o->instance[0]) {
        snprintf(name, sizeof(name), "%.200s:%d", o->host, vm->pid);
        vm_origin_set(o, "service.instance.id", name);
    }
}

void vm_origin_escape(struct buf *to, const char *text)
{
    for (; *text; text++) {
        if (isalnum((unsigned char)*text) || strchr("-._~", *text))
            buf_u8(to, (uint8_t)*text);
        else
            buf_printf(to, "%%%02X", (unsigned char)*text);
    }
}

void vm_origin_query(const struct vm_origin *o, struct buf *to)
{
    const char *const own[][2] = {{"service=", o->service},
                                  {"&version=", o->version},
                                  {"&host=", o->host},
                                  {"&instance=", o->instance}};

    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        buf_string(to, own[i][0]);
        vm_origin_escape(to, own[i][1]);
    }
    for (size_t i = 0; i < o->n_labels; i++) {
        buf_string(to, "&label=");
        vm_origin_escape(to, o->labels[i].key);
        buf_string(to, "%3D");
        vm_origin_escape(to, o->labels[i].value);
    }
}
