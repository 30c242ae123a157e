// SPDX-License-Identifier: Apache-2.0
package jvmscope;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Stands for the JDK's annotation of that name: the JIT may take what is not zero, in a field and its array, as
 * constant.
 */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.FIELD)
public @interface Stable {
}
