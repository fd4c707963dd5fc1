package lockstep.transform;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/** Has a {@code TransformServer} in each executor ({@code spark.plugins}). In local mode the driver is the executor. */
public final class TransformPlugin implements SparkPlugin {
    @Override
    public DriverPlugin driverPlugin() {
        return null;
    }

    @Override
    public ExecutorPlugin executorPlugin() {
        return new ExecutorPlugin() {
            private TransformServer server;

            @Override
            public void init(PluginContext context, Map<String, String> settings) {
                try {
                    server = TransformServer.start();
                } catch (IOException exc) {
                    throw new UncheckedIOException(exc);
                }
            }

            @Override
            public void shutdown() {
                if (server != null) {
                    server.close();
                }
            }
        };
    }
}
