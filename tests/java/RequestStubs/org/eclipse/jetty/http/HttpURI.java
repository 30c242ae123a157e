// SPDX-License-Identifier: Apache-2.0
package org.eclipse.jetty.http;

public interface HttpURI {
    String getPath();
}
