package lockstep.transform;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;

/** A statement as the slots get it: filters and projections in the order in which a record passes them. */
public final class TransformStages implements Serializable {
    private static final long serialVersionUID = 1L;

    /** The columns of Spark's Kafka source, in this order. */
    static final List<String> COLUMNS =
        List.of("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers");

    /** The columns that a statement may make anew; the others stay as they are. */
    static final List<String> WRITABLE = List.of("key", "value", "headers", "timestamp");

    private static final List<String> PACKAGES = List.of("lockstep.transform.", "org.apache.spark.", "scala.",
        "java.lang.", "java.util.", "java.math.", "java.time.", "java.text.");

    /** A filter, or else a projection; {@code input} are the attributes of what it gets. */
    static final class Stage implements Serializable {
        private static final long serialVersionUID = 1L;
        final Expression condition;
        final List<Expression> projection;
        final List<Attribute> input;

        Stage(Expression condition, List<Expression> projection, List<Attribute> input) {
            this.condition = condition;
            this.projection = projection == null ? null : new ArrayList<>(projection);
            this.input = new ArrayList<>(input);
        }

        List<Expression> expressions() {
            return condition != null ? List.of(condition) : projection;
        }
    }

    final ArrayList<Stage> stages = new ArrayList<>();
    final ArrayList<String> read = new ArrayList<>();
    /** The names of the last stage's columns; empty: the last stage is a filter, and nothing is written. */
    final ArrayList<String> written = new ArrayList<>();
    final LinkedHashMap<String, String> settings = new LinkedHashMap<>();

    byte[] serialize() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(this);
        } catch (IOException exc) {
            throw new IllegalStateException(exc.getClass().getName(), exc);
        }
        return bytes.toByteArray();
    }

    static TransformStages deserialize(byte[] bytes) throws IOException, ClassNotFoundException {
        ClassLoader loader = TransformStages.class.getClassLoader();
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes)) {
            @Override
            protected Class<?> resolveClass(ObjectStreamClass description) throws IOException, ClassNotFoundException {
                try {
                    return Class.forName(description.getName(), false, loader);
                } catch (ClassNotFoundException exc) {
                    return super.resolveClass(description);
                }
            }
        }) {
            in.setObjectInputFilter(TransformStages::check);
            return (TransformStages) in.readObject();
        }
    }

    private static ObjectInputFilter.Status check(ObjectInputFilter.FilterInfo info) {
        Class<?> type = info.serialClass();
        while (type != null && type.isArray()) {
            type = type.getComponentType();
        }
        if (type == null || type.isPrimitive()) {
            return ObjectInputFilter.Status.UNDECIDED;
        }
        String name = type.getName();
        boolean isOfAnExpression = PACKAGES.stream().anyMatch(name::startsWith);
        return isOfAnExpression ? ObjectInputFilter.Status.ALLOWED : ObjectInputFilter.Status.REJECTED;
    }

    /** Returns the names of the secrets that the statement needs. */
    List<String> secrets() {
        return masks().stream().map(JsonMask::secret).filter(name -> name != null).distinct().sorted().toList();
    }

    /** Gives each masking its secret. Fails with the name of one that is missing. */
    void bind(Map<String, byte[]> secrets) throws Refusal {
        for (JsonMask mask : masks()) {
            if (mask.secret() != null && secrets.getOrDefault(mask.secret(), new byte[0]).length == 0) {
                throw new Refusal("SECRET_MISSING", mask.secret());
            }
            try {
                mask.bind(secrets);
            } catch (java.security.GeneralSecurityException exc) {
                throw new Refusal("ENGINE_ERROR", exc.getClass().getName());
            }
        }
    }

    private List<JsonMask> masks() {
        List<JsonMask> masks = new ArrayList<>();
        for (Stage stage : stages) {
            for (Expression expression : stage.expressions()) {
                collect(expression, masks);
            }
        }
        return masks;
    }

    private static void collect(Expression expression, List<JsonMask> masks) {
        if (expression instanceof Literal literal && literal.value() instanceof JsonMask mask) {
            masks.add(mask);
        }
        for (Expression child : Scala.list(expression.children())) {
            collect(child, masks);
        }
    }
}
