// SPDX-License-Identifier: Apache-2.0
package org.eclipse.jetty.server;

public interface Request {
    String getMethod();

    org.eclipse.jetty.http.HttpURI getHttpURI();

    org.eclipse.jetty.http.HttpFields getHeaders();
}
