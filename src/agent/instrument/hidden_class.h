/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hidden classes of the program, in which no agent can place probes. Those that the JDK makes, for
 * lambdas, switches and so on, are not among them: their code is not the program's.
 */
#pragma once

#include "base/strpool.h"

#include <jni.h>

/*
 * Receives a hidden class of the program. plain: its name, in the internal form, without what the
 * VM has added to it.
 */
typedef void hidden_class_seen(jclass c, struct str plain);

/* Calls seen if c, for which the VM sends ClassPrepare, is a hidden class of the program. */
void hidden_class_prepared(jclass c, hidden_class_seen *seen);
/* Calls seen for each loaded class that is a hidden class of the program. */
void hidden_classes_loaded(JNIEnv *jni, hidden_class_seen *seen);
