// SPDX-License-Identifier: Apache-2.0
package jvmscope;

import java.lang.annotation.*;

/** Stands for the JDK's annotation, as ForceInline does. */
@Retention(RetentionPolicy.RUNTIME)
public @interface DontInline {
}
