/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exceptions=counts: probes (probe/java/lang/JvmscopeThrown.java) before each throw and where each
 * handler begins, which count into rows.h. JVM TI's Exception event, for which the VM gives up
 * compiled code at every throw, stays off.
 */
#pragma once

#include "base/buf.h"

#include <jni.h>
#include <stdint.h>

int thrown_probes_on(JNIEnv *jni, struct buf *why) must_check;
void thrown_probes_off(JNIEnv *jni);
/* Throws that were not counted: too many rows. */
uint64_t thrown_probes_lost(void);
/* Throws and handlers that have no probe: too many sites. */
uint64_t thrown_probes_left(void);
