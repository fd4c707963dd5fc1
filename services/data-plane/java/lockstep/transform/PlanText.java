package lockstep.transform;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
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
            append(literal.value(), literal.dataType());
        } else if (part instanceof Expression expression) {
            text.append(expression.getClass().getSimpleName());
            appendFields(expression);
        } else if (part instanceof ExprId id) {
            text.append('#').append(attributes.computeIfAbsent(id.id(), number -> attributes.size()));
        } else if (part instanceof DataType type) {
            text.append(type.json());
        } else if (part instanceof Option<?> option) {
            appendItems(option.toList());
        } else if (part instanceof scala.collection.Map<?, ?> map) {
            // In the order of its texts: that of a map is its own affair.
            List<String> entries = new ArrayList<>();
            for (Object entry : Scala.list(map)) {
                entries.add(entry.toString());
            }
            entries.stream().sorted().forEach(this::append);
        } else if (part instanceof scala.collection.Iterable<?> items) {
            appendItems(items);
        } else if (part instanceof Product product) {
            text.append(product.productPrefix());
            appendFields(product);
        } else if (part == null || part instanceof String || part instanceof UTF8String || part instanceof Number
                || part instanceof Boolean || part instanceof Enum) {
            appendText(part);
        } else if (part instanceof scala.Enumeration.Value value) {
            text.append(value);
        } else {
            text.append(part instanceof Class<?> named ? named.getName() : part.getClass().getName());
        }
        text.append(' ');
    }

    /** The value of a literal. Arrays, rows and maps of Spark have no text of their own, nor have bytes. */
    private void append(Object value, DataType type) {
        if (value instanceof byte[] bytes) {
            appendText(HexFormat.of().formatHex(bytes));
        } else if (value instanceof ArrayData array && type instanceof ArrayType arrays) {
            text.append('[');
            for (int i = 0; i < array.numElements(); i++) {
                append(array.isNullAt(i) ? null : array.get(i, arrays.elementType()), arrays.elementType());
            }
            text.append(']');
        } else if (value instanceof MapData map && type instanceof MapType maps) {
            append(map.keyArray(), new ArrayType(maps.keyType(), false));
            append(map.valueArray(), new ArrayType(maps.valueType(), true));
        } else if (value instanceof InternalRow row && type instanceof StructType fields) {
            text.append('{');
            for (int i = 0; i < fields.length(); i++) {
                DataType field = fields.apply(i).dataType();
                append(row.isNullAt(i) ? null : row.get(i, field), field);
            }
            text.append('}');
        } else {
            appendText(value);
        }
    }

    private void appendText(Object part) {
        String written = String.valueOf(part);
        text.append(written.length()).append(':').append(written).append(' ');
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
