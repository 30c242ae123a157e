// SPDX-License-Identifier: Apache-2.0
package org.eclipse.jetty.http;

public interface HttpFields {
    String get(String name);
}
