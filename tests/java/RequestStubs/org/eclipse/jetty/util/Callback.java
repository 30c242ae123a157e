// SPDX-License-Identifier: Apache-2.0
package org.eclipse.jetty.util;

public interface Callback {
    void succeeded();

    void failed(Throwable t);
}
