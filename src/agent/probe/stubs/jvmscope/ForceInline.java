// SPDX-License-Identifier: Apache-2.0
package jvmscope;

import java.lang.annotation.*;

/** Stands for the JDK's annotation, whose package depends on the version; renamed when the class is defined. */
@Retention(RetentionPolicy.RUNTIME)
public @interface ForceInline {
}
