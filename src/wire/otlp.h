/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTelemetry's profiles, package opentelemetry.proto.profiles.v1development, as of release 1.11
 * of opentelemetry-proto (https://github.com/open-telemetry/opentelemetry-proto). A file or an HTTP
 * body is one ProfilesData message; ExportProfilesServiceRequest has the same fields.
 */
#pragma once

#include "wire/batch.h"

#define OTLP_PATH "/v1development/profiles"
#define OTLP_TYPE "application/x-protobuf"

/*
 * Adds the profiles of a message to a batch. Releases 1.9 and 1.10 are read as well. Returns 0, or
 * with the reason in why: -EPROTO for a damaged message or an index out of range, -E2BIG beyond a
 * limit, -ENOTSUP for an older release, -ENOMEM. The batch may have grown when it fails.
 */
int otlp_decode(struct wire_batch *b, const void *data, size_t len, struct buf *why) must_check;

/* Appends the batch as one message. Returns 0 or a negative errno. */
int otlp_encode(const struct wire_batch *b, struct buf *to) must_check;

/* Returns whether bytes look like such a message and not like another protobuf. */
bool otlp_is(const void *data, size_t len);

/*
 * Appends the answer to a request: ExportProfilesServiceResponse. rejected: how many profiles were
 * not accepted, for the reason `why` (NULL: none).
 */
void otlp_encode_answer(uint64_t rejected, const char *why, struct buf *to);
