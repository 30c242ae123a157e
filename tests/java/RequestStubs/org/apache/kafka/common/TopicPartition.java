// SPDX-License-Identifier: Apache-2.0
package org.apache.kafka.common;

public final class TopicPartition {
    private final String topic;
    private final int partition;

    public TopicPartition(String topic, int partition) {
        this.topic = topic;
        this.partition = partition;
    }

    @Override
    public String toString() {
        return topic + "-" + partition;
    }
}
