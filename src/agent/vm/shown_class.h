/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of classes as they appear in outputs. Any attached thread except in signal handlers;
 * requires the capability to read constant pools.
 */
#pragma once

#include <jvmti.h>

/*
 * Returns a class's descriptor as outputs show it: "Ljava/lang/String;", "[I", without the suffixes
 * that the VM adds to the names of classes that it generated (base/generated_name.h). The caller
 * frees the text. Returns NULL when the VM does not provide the descriptor or memory runs out.
 */
char *shown_class_signature(jclass c);
