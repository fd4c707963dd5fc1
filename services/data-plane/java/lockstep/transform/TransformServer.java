package lockstep.transform;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The Unix socket of this JVM: {@code lockstep-transform-PID/socket} in its temporary folder,
 * or in {@code /tmp} if that has a long path. A slot's worker, which
 * descends from the JVM, finds it by the pid.
 */
final class TransformServer implements AutoCloseable {
    private static final int MAX_CONNECTIONS = 256;
    private static final int LONGEST_PATH = 100;
    private static final Set<PosixFilePermission> OWNER_ONLY = PosixFilePermissions.fromString("rwx------");

    private final Path folder;
    private final Path socket;
    private final ServerSocketChannel channel;
    private final AtomicInteger connections = new AtomicInteger();

    private TransformServer(Path folder) throws IOException {
        this.folder = folder;
        socket = folder.resolve("socket");
        // Nobody else can reach the socket in a folder that nobody else can enter, from its first moment on.
        FileAttribute<Set<PosixFilePermission>> permissions = PosixFilePermissions.asFileAttribute(OWNER_ONLY);
        if (Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
                && Files.getPosixFilePermissions(folder, LinkOption.NOFOLLOW_LINKS).equals(OWNER_ONLY)) {
            Files.deleteIfExists(socket);  // of a dead process that had this pid; fails if it was another user's
        } else {
            Files.createDirectory(folder, permissions);
        }
        channel = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        channel.bind(UnixDomainSocketAddress.of(socket));
        Files.setPosixFilePermissions(socket, PosixFilePermissions.fromString("rw-------"));
    }

    static TransformServer start() throws IOException {
        TransformServer server = new TransformServer(chooseFolder(System.getProperty("java.io.tmpdir")));
        server.run(server::accept, "lockstep-transform");
        return server;
    }

    /** The folder of the socket. A deep temporary folder is not taken, because a socket's path is short. */
    static Path chooseFolder(String temporary) {
        String name = "lockstep-transform-" + ProcessHandle.current().pid();
        Path folder = Path.of(temporary).toAbsolutePath().resolve(name);
        int length = folder.resolve("socket").toString().getBytes(StandardCharsets.UTF_8).length;
        return length <= LONGEST_PATH ? folder : Path.of("/tmp").resolve(name);
    }

    private void run(Runnable body, String name) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        // Spark's generated code is compiled against this class loader, which has our functions.
        thread.setContextClassLoader(TransformServer.class.getClassLoader());
        thread.start();
    }

    private void accept() {
        while (channel.isOpen()) {
            try {
                SocketChannel connected = channel.accept();
                if (connections.incrementAndGet() > MAX_CONNECTIONS) {
                    connections.decrementAndGet();
                    connected.close();
                    continue;
                }
                run(() -> serve(connected), "lockstep-transform-connection");
            } catch (IOException exc) {
                pause();  // closed, or out of file descriptors for now
            }
        }
    }

    private static void pause() {
        try {
            Thread.sleep(100);
        } catch (InterruptedException exc) {
            Thread.currentThread().interrupt();
        }
    }

    private void serve(SocketChannel connected) {
        try (connected) {
            new TransformConnection(connected).run();
        } catch (IOException exc) {
            // The slot has gone, or ended the connection as its time was up.
        } finally {
            connections.decrementAndGet();
        }
    }

    @Override
    public void close() {
        try {
            channel.close();
            Files.deleteIfExists(socket);
            Files.deleteIfExists(folder);
        } catch (IOException exc) {
            // The temporary folder is removed as a whole by who made it.
        }
    }
}
