// SPDX-License-Identifier: Apache-2.0
package org.apache.kafka.clients.consumer;

import java.time.Duration;
import org.apache.kafka.common.TopicPartition;

/** Has records of a topic every other time. */
public class KafkaConsumer {
    private int polls;

    public ConsumerRecords poll(Duration timeout) {
        return new ConsumerRecords(polls++ % 2 == 0 ? new TopicPartition("orders", polls % 3)
                                                    : null);
    }

    public void close() {
    }
}
