/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that are the same in every process. Libraries that make classes at run time number them or
 * give them random names: "Cart$$EnhancerBySpringCGLIB$$3a9f01c2". This module removes those parts.
 * base/generated_name.h handles the classes that the VM itself generates (lambdas, proxies,
 * accessors, hidden classes).
 */
#pragma once

#include <stddef.h>

/* Shortens "package.Class.method" in place and returns the new length. */
size_t fleet_stable_label(char *label, size_t len);
