/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members that the code of a class names: those to which its constant pool refers. Any attached
 * thread except in signal handlers; requires the capability to read constant pools.
 */
#pragma once

#include "base/strpool.h"

#include <jvmti.h>

/*
 * Call f with each field or method that the code of a class names; owner is in the internal form.
 */
void code_each_field(jclass c, void (*f)(void *context, struct str owner, struct str name),
                     void *context);
void code_each_method(jclass c, void (*f)(void *context, struct str owner, struct str name),
                      void *context);
