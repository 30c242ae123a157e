/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exceptions=counts: probes (probe/java/lang/JvmscopeThrown.java) in front of each throw and at the
 * start of each handler, which count into rows.h. JVM TI's Exception event stays disabled, because
 * the VM deoptimizes for it at every throw.
 */
#pragma once

#include "base/buf.h"

#include <jni.h>
#include <stdint.h>

int thrown_probes_on(JNIEnv *jni, struct buf *why) must_check;
void thrown_probes_off(JNIEnv *jni);
/* Throws that were not counted because there were too many rows. */
uint64_t thrown_probes_lost(void);
/* Throws and handlers without a probe because there were too many sites. */
uint64_t thrown_probes_left(void);
