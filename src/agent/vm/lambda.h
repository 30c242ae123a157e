/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of classes as they appear in outputs. Any attached thread except in signal handlers;
 * requires the capability to read constant pools.
 */
#pragma once

#include "base/generated_name.h"

#include <jvmti.h>

/*
 * Stores the method that a lambda's class implements, which is among those that the class refers
 * to, or the interfaces of a proxy's class. signature: as returned by the VM. Nothing is found for
 * other classes.
 */
void lambda_target(jclass c, const char *signature, struct generated_target *ret);
/* Calls f with each field that the code of a class names; owner is in the internal form. */
void lambda_each_field(jclass c, void (*f)(void *context, struct str owner, struct str name),
                       void *context);
/*
 * Returns a class's descriptor as outputs show it: "Ljava/lang/String;", "[I", without the suffixes
 * that the VM adds to the names of classes that it generated (base/generated_name.h). The caller
 * frees it. NULL: the VM does not provide it, or out of memory.
 */
char *lambda_class_signature(jclass c);
