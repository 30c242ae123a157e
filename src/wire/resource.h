/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes the profiled program by labels of a resource, from the same sources as OpenTelemetry's
 * programs.
 */
#pragma once

#include "wire/batch.h"

/*
 * Makes the labels of a resource from the following, where later ones override earlier ones:
 * `service` as service.name (NULL or empty: "unknown_service:java"), the environment's
 * OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME, and `labels`, a list like "version=1.8,region=eu"
 * (NULL: none). In both lists a byte may be written as a percent sign and two hexadecimal digits,
 * such as %2C. Returns the set; -EINVAL, with the reason in why, for a malformed list; -E2BIG or
 * -ENOMEM.
 */
int64_t wire_resource(struct wire_batch *b, const char *service, const char *labels,
                      struct buf *why) must_check;
