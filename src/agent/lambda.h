/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of classes as outputs have them. Any attached thread outside signal handlers; the VM lets
 * the agent read constant pools.
 */
#pragma once

#include "base/made_name.h"

#include <jvmti.h>

/*
 * The method that a lambda stands for: it is among those that its class refers to. signature: as
 * the VM tells it. Nothing is found for other classes.
 */
void lambda_target(jclass c, const char *signature, struct made_target *ret);
/*
 * A class's descriptor as outputs have it: "Ljava/lang/String;", "[I", without what the VM adds to
 * the names of classes that it made (base/made_name.h). The caller frees. NULL: the VM does not
 * tell it, or no memory.
 */
char *class_signature(jclass c);
