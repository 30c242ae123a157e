// SPDX-License-Identifier: Apache-2.0
package okhttp3;

import java.io.IOException;

public interface Callback {
    void onFailure(IOException e);

    void onResponse(Response response);
}
