package lockstep.transform;

import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Product;

/**
 * Stages as text that is the same in every JVM: the numbers of Spark's attributes are counted anew, and what has no
 * text of its own is named by its class.
 */
final class PlanText {
    private final Map<Long, Integer> attributes = new HashMap<>();
    private final StringBuilder text = new StringBuilder();

    static String of(TransformStages stages) {
        PlanText plan = new PlanText();
        for (TransformStages.Stage stage : stages.stages) {
            plan.text.append(stage.condition != null ? "Filter\n" : "Project\n");
            stage.input.forEach(attribute -> plan.append(attribute.exprId()));
            for (Expression expression : stage.expressions()) {
                plan.text.append("  ");
                plan.append(expression);
                plan.text.append('\n');
            }
        }
        return plan.text.append(stages.written).append('\n').append(stages.settings).append('\n').toString();
    }

    private void append(Object part) {
        if (part instanceof Literal literal) {
            append(literal.dataType());
            append(literal.value());
        } else if (part instanceof Expression expression) {
            text.append(expression.getClass().getSimpleName());
            appendFields(expression);
        } else if (part instanceof ExprId id) {
            text.append('#').append(attributes.computeIfAbsent(id.id(), number -> attributes.size()));
        } else if (part instanceof DataType type) {
            text.append(type.json());
        } else if (part instanceof byte[] bytes) {
            text.append(HexFormat.of().formatHex(bytes));
        } else if (part instanceof Option<?> option) {
            appendItems(option.toList());
        } else if (part instanceof scala.collection.Map<?, ?> map) {
            // A small map keeps its order; a larger one has that of its hashes, which is the same in every JVM too.
            appendItems(map);
        } else if (part instanceof scala.collection.Iterable<?> items) {
            appendItems(items);
        } else if (part instanceof Product product) {
            text.append(product.productPrefix());
            appendFields(product);
        } else if (part == null || part instanceof String || part instanceof UTF8String || part instanceof Number
                || part instanceof Boolean || part instanceof Enum || isOurs(part) || isData(part)) {
            String written = String.valueOf(part);
            text.append(written.length()).append(':').append(written);
        } else if (part instanceof scala.Enumeration.Value value) {
            text.append(value);
        } else {
            text.append(part instanceof Class<?> named ? named.getName() : part.getClass().getName());
        }
        text.append(' ');
    }

    private static boolean isOurs(Object part) {
        return part instanceof JsonRead || part instanceof JsonMask;
    }

    /** Values of literals: arrays, maps, decimals, intervals, whose text is their content. */
    private static boolean isData(Object part) {
        String name = part.getClass().getName();
        return name.startsWith("org.apache.spark.sql.catalyst.util.Generic")
            || name.startsWith("org.apache.spark.unsafe.types.")
            || name.equals("org.apache.spark.sql.types.Decimal")
            || name.equals("org.apache.spark.sql.catalyst.util.ArrayBasedMapData");
    }

    private void appendFields(Product product) {
        text.append('(');
        for (int i = 0; i < product.productArity(); i++) {
            append(product.productElement(i));
        }
        text.append(')');
    }

    private void appendItems(scala.collection.Iterable<?> items) {
        text.append('[');
        for (Object item : Scala.list(items)) {
            append(item);
        }
        text.append(']');
    }
}
