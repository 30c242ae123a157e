// SPDX-License-Identifier: Apache-2.0
import java.io.FileInputStream;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/**
 * main waits 50 ms for a connection, 80 ms for what it says, 60 ms for a second answer over a
 * channel, 70 ms for its input.
 */
public class IoWaits {
    public static void main(String[] args) throws Exception {
        try (ServerSocket server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress())) {
            Thread client = new Thread(() -> {
                try (SocketChannel channel = SocketChannel.open()) {
                    Thread.sleep(50);
                    channel.connect(server.getLocalSocketAddress());
                    Thread.sleep(80);
                    channel.write(ByteBuffer.wrap(new byte[] {1}));
                    ByteBuffer answer = ByteBuffer.allocate(1);
                    channel.read(answer);
                } catch (Exception e) {
                    e.printStackTrace();
                }
            }, "client");
            client.start();
            try (Socket s = server.accept(); InputStream in = s.getInputStream()) {
                in.read(new byte[16]);
                Thread.sleep(60);
                s.getOutputStream().write(2);
            }
            client.join();
            System.out.println("ready");
            try (InputStream in = new FileInputStream("/dev/stdin")) {
                in.read(new byte[16]);
            }
        }
    }
}
