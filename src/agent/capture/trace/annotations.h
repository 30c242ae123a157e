/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The annotations of the classes in which trace= has looked for one that a pattern names, so that a
 * misspelt name can be answered with the right one. Knows no JVM; callable from any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/strpool.h"

/* Keeps the type of an annotation, as a descriptor: "Lpkg/Audited;". Too many are left out. */
void trace_annotation_add(struct str descriptor);
/*
 * Appends "; there is @pkg.Name", the annotation that the wanted name, "pkg.Name" or "Name", most
 * likely means: one of this name in another package, or one of a similar name. Appends nothing if
 * there is none.
 */
void trace_annotation_put_similar(const char *wanted, struct buf *why);
void trace_annotations_clear(void);
