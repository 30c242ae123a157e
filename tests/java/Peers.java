// SPDX-License-Identifier: Apache-2.0
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/**
 * main waits for a byte of one server and of another, over sockets of which a later one gets the
 * number of one that was closed.
 */
public class Peers {
    /** Accepts, and writes a byte 50 ms after each one that comes. */
    static ServerSocket server() throws Exception {
        ServerSocket server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
        Thread t = new Thread(() -> {
            try {
                for (;;)
                    try (Socket s = server.accept()) {
                        while (s.getInputStream().read() >= 0) {
                            Thread.sleep(50);
                            s.getOutputStream().write(1);
                        }
                    }
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, "server");
        t.setDaemon(true);
        t.start();
        return server;
    }

    static void ask(Socket s) throws Exception {
        s.getOutputStream().write(1);
        s.getInputStream().read();
        System.out.println(s.getPort());
    }

    public static void main(String[] args) throws Exception {
        ServerSocket[] servers = {server(), server(), server()};
        Socket first = new Socket(servers[0].getInetAddress(), servers[0].getLocalPort());
        Socket second = new Socket(servers[1].getInetAddress(), servers[1].getLocalPort());
        for (Socket s : new Socket[] {first, first, second, first})
            ask(s);
        first.close();
        Socket third = new Socket(servers[2].getInetAddress(), servers[2].getLocalPort());
        for (Socket s : new Socket[] {third, third, second})
            ask(s);
        System.exit(0);
    }
}
