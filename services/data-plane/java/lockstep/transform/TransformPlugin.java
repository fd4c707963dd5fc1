package lockstep.transform;

import java.io.IOException;
import java.util.Map;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Has a {@code TransformServer} in each executor ({@code spark.plugins}). In local mode the driver is the executor. */
public final class TransformPlugin implements SparkPlugin {
    private static final Logger LOG = LoggerFactory.getLogger(TransformPlugin.class);

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
                    // Slots find no server and say so. Topics without a transform go on.
                    LOG.error("transforms are not evaluated here: their socket cannot be opened", exc);
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
