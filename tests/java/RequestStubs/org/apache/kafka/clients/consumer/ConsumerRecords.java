// SPDX-License-Identifier: Apache-2.0
package org.apache.kafka.clients.consumer;

import java.util.Collections;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;

public class ConsumerRecords {
    private final Set<TopicPartition> partitions;

    ConsumerRecords(TopicPartition of) {
        partitions = of == null ? Collections.emptySet() : Collections.singleton(of);
    }

    public Set<TopicPartition> partitions() {
        return partitions;
    }
}
