/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exceptions=counts: probes (probe/java/lang/JvmscopeThrown.java) in front of each throw and at the
 * start of each handler, which count into thrown_rows.h. JVM TI's Exception event stays disabled,
 * because the VM deoptimizes for it at every throw.
 */
#pragma once

#include "base/buf.h"

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* Stands for the handler of an exception that a handler without a probe may have caught. */
#define THROWN_NOT_KNOWN "not known"

/*
 * Inserts the probes. Returns 0 or a negative errno: -ENOTSUP with a sentence in `why`, or the
 * error of probe_define or instrument_on. selected: only some classes get probes. If so, or if
 * methods were running already, handlers without a probe may run, and an exception whose handler no
 * probe sees counts as caught by THROWN_NOT_KNOWN.
 */
int thrown_probes_on(JNIEnv *jni, bool selected, struct buf *why) must_check;
/*
 * Lets the probes count from now on. To be called when all classes have their probes, so that all
 * of them count for the same time.
 */
void thrown_probes_begin(void);
void thrown_probes_off(JNIEnv *jni);
/* From now on handlers without a probe may run. */
void thrown_probes_partial(void);
/* Returns how many throws were not counted because there were too many rows. */
uint64_t thrown_probes_lost(void);
/* Returns how many throws and handlers have no probe because there were too many sites. */
uint64_t thrown_probes_left(void);
