// SPDX-License-Identifier: Apache-2.0
package org.eclipse.jetty.server;

public interface Response {
    void setStatus(int status);
}
