// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;

/**
 * Maps a file, cuts it short, and reads it for each byte of its input: the VM turns its own SIGBUS
 * into an InternalError. With any agent of JVM TI, JDK 17 may throw it a moment later than where
 * the file was read. Prints "errors N" before each byte, and "done N".
 */
public class LosesItsFile {
    static int seen, got;

    static void read(MappedByteBuffer bytes) throws Exception {
        for (;;) {
            System.out.println("errors " + seen);
            if (System.in.read() < 0)
                return;
            got += bytes.get(1 << 19);
            Thread.sleep(1);
        }
    }

    public static void main(String[] args) throws Exception {
        File name = File.createTempFile("loses", null);
        try (RandomAccessFile file = new RandomAccessFile(name, "rw")) {
            file.setLength(1 << 20);
            MappedByteBuffer bytes =
                    file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 1 << 20);
            bytes.put(0, (byte) 1);
            file.setLength(0);
            System.out.println("ready");
            for (boolean over = false; !over;) {
                try {
                    read(bytes);
                    over = true;
                } catch (InternalError e) {
                    seen++;
                }
            }
            System.out.println("done " + seen + " " + got);
        } finally {
            name.delete();
        }
    }
}
