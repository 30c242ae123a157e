/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "base/macro.h"

#include <jvmti.h>

/* Appends the reason that an error of JVM TI gives, in words: "the stack has no such frame". */
void vm_put_error(struct buf *out, jvmtiError e);
