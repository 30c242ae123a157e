// SPDX-License-Identifier: Apache-2.0
package okhttp3;

public final class Response {
}
