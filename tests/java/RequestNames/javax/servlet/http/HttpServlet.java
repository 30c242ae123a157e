// SPDX-License-Identifier: Apache-2.0
package javax.servlet.http;

public abstract class HttpServlet {
    protected void service(HttpServletRequest request, HttpServletResponse response) {
        answer();
    }

    protected abstract void answer();
}
