/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What classes that the VM generated stand for. Any attached thread except in signal handlers;
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
