// SPDX-License-Identifier: Apache-2.0
package javax.servlet.http;

/** What the servlet interface of that name has, as far as a request's name needs it. */
public interface HttpServletRequest {
    String getMethod();

    String getRequestURI();
}
