/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines the name and labels of a VM of this machine in a fleet, from its environment or its
 * command line.
 */
#pragma once

#include "base/buf.h"
#include "base/vec.h"
#include "proto/vm.h"

enum { ORIGIN_LABELS = 32, ORIGIN_TEXT = 256 };

struct origin_label {
    char key[ORIGIN_TEXT], value[ORIGIN_TEXT];
};

struct vm_origin {
    char service[ORIGIN_TEXT], version[ORIGIN_TEXT], host[ORIGIN_TEXT], instance[ORIGIN_TEXT];
    struct origin_label labels[ORIGIN_LABELS];
    size_t n_labels;
};

/*
 * Fills in what is known about a VM, from OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES, the names
 * that Kubernetes' downward interface is usually given (POD_NAME, POD_NAMESPACE, NODE_NAME ...),
 * the container, and otherwise the main class or jar, this machine's name and the process.
 */
void vm_origin_read(struct vm_origin *ret, const struct vm *vm);
/*
 * Sets a label, or the member of the origin for which a key such as service.name, service.version
 * or host.name stands. Drops a label whose value is empty, and labels beyond ORIGIN_LABELS.
 */
void vm_origin_set(struct vm_origin *o, const char *key, const char *value);
/* Appends the origin as "service=...&version=...&label=..." for the query of a URL. */
void vm_origin_query(const struct vm_origin *o, struct buf *to);
/* Appends a text, percent-encoded for the query of a URL. */
void vm_origin_escape(struct buf *to, const char *text);
