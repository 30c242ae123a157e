/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What classes that the VM generated stand for. Any attached thread except in signal handlers;
 * requires the capability to read constant pools.
 */
#pragma once

#include "base/generated_name.h"

#include <jvmti.h>

/*
 * For a lambda's class, stores the method that implements the lambda, which is among those that the
 * class refers to. For a proxy's class, stores its interfaces. For any other class *ret is
 * unchanged. signature: as returned by the VM.
 */
void lambda_target(jclass c, const char *signature, struct generated_target *ret);
