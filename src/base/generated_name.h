/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of classes that the VM generates at run time: lambdas, hidden classes, accessors of
 * reflection. The VM adds addresses and running numbers, which differ from run to run. They look
 * like "Shop$$Lambda$14/0x0000000800c031f0", with a dot in place of the slash in JVM TI, a plus in
 * the VM's structures, and a decimal number in JDK 8; Flight Recorder adds a slash and a hash. All
 * outputs shorten these names to "Shop$$Lambda", followed by the method that implements the lambda
 * where it is known: "Shop$$Lambda[lambda$main$0]", "Shop$$Lambda[String::length]". A proxy keeps
 * its number unless its interfaces are known, by which it is called then:
 * "jdk.proxy.$Proxy[Greeter]" for "jdk.proxy2.$Proxy14".
 */
#pragma once

#include "base/strpool.h"

#include <stdbool.h>

/*
 * Removes addresses and running numbers from a class name, which may be dotted, internal, or a
 * descriptor. Returns the new length.
 */
size_t generated_name_normalize(char *name, size_t len);
/*
 * Returns whether a name is that of a lambda's class, with or without the method that implements
 * it. *ret_host is then the length of the name of the class that contains the lambda.
 */
bool generated_name_is_lambda(const char *name, size_t len, size_t *ret_host);
/*
 * Returns whether an internal name is that of a class that the VM made by
 * Unsafe.defineAnonymousClass, before hidden classes existed: "p/C/1234". Unlike all other names,
 * theirs end in '/' and a number.
 */
bool generated_name_is_anonymous(const char *name, size_t len);

/*
 * Returns whether a name, dotted or internal, is that of a class that the agent injected into the
 * VM. No result shows such classes.
 */
bool generated_name_is_agents(const char *name, size_t len);
/*
 * Returns whether a method, by its name with its class, is one of the agent whose time is the
 * profiler's and not that of the method that it was inserted into: it hands an object to the thread
 * that calls toString(), waits for the text, or is that thread's own; or it ends the recording.
 */
bool generated_name_is_profilers(const char *name, size_t len);

/*
 * Returns whether a name is that of a function of the agent's library, "libhprof.so.f", also of a
 * copy that was lent to a VM. Stacks are shown without such functions. If the VM called one for an
 * event, all that it runs is the agent's (generated_name_is_vms_library of its caller); otherwise
 * it stands in front of a native method or JNI function, and its time counts as its caller's.
 */
bool generated_name_is_agents_library(const char *name, size_t len);
/* Returns whether a name is that of a function of HotSpot's library, "libjvm.so.f". */
bool generated_name_is_vms_library(const char *name, size_t len);

/*
 * The method that implements a lambda, chosen among those that the lambda's class refers to. A
 * zeroed struct has no method yet.
 */
struct generated_target {
    int rank;
    char text[256];
    /*
     * Of a lambda: the same as a pattern of --trace, but with slashes: "com/shop/Cart.add". Empty
     * if it is too long.
     */
    char pattern[256];
    bool is_lambda; /* rather than a method reference */
};

/*
 * Considers a method of `class` to which the lambda's class refers as the one that implements the
 * lambda. host: the class that contains the lambda. Names of classes are in the internal form.
 */
void generated_target_consider(struct generated_target *t, struct str host, struct str class,
                               struct str method);

/*
 * Returns whether a name, internal or a descriptor, is that of a class that java.lang.reflect.Proxy
 * made.
 */
bool generated_name_is_proxy(const char *name, size_t len);
/* Adds an interface, in the internal form, of a proxy's class. */
void generated_target_implements(struct generated_target *t, struct str interface);
/*
 * Does what generated_name_normalize does, and also removes the numbers from the name of a proxy's
 * class if `t` has the proxy's interfaces. Returns the new length. The caller appends t's text in
 * brackets.
 */
size_t generated_name_normalize_for(char *name, size_t len, const struct generated_target *t);
