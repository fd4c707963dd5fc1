package lockstep.transform;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.BinaryType$;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The functions {@code json_text(value, path)}, {@code json_int}, {@code json_has} and
 * {@code json_mask(value, path, how)}. Spark's generated code calls a method of an object for each of them.
 */
final class JsonFunctions {
    /** How many arguments each one takes. */
    static final Map<String, Integer> ARGUMENTS = Map.of("json_text", 2, "json_int", 2, "json_has", 2, "json_mask", 3);

    private JsonFunctions() { }

    static void register(FunctionRegistry registry) {
        for (String name : ARGUMENTS.keySet()) {
            registry.createOrReplaceTempFunction(name, arguments -> make(name, Scala.list(arguments)), "java_udf");
        }
    }

    /**
     * Says what is wrong with the arguments of a call, as they are parsed.
     *
     * @return a sentence, and the argument that is meant; null: nothing is
     */
    static Wrong check(String name, List<Expression> arguments) {
        if (arguments.size() != ARGUMENTS.get(name)) {
            return new Wrong(name + " takes " + ARGUMENTS.get(name) + " arguments", null);
        }
        for (Expression argument : arguments.subList(1, arguments.size())) {
            if (!(argument instanceof Literal literal && literal.value() instanceof UTF8String)) {
                return new Wrong("a text in quotes is expected, which is the same for all records", argument);
            }
        }
        try {
            JsonPath path = JsonPath.parse(text(arguments.get(1)));
            if (path.length() == 0 && name.equals("json_mask")) {
                return new Wrong("the path names no field", arguments.get(1));
            }
        } catch (IllegalArgumentException exc) {
            return new Wrong(exc.getMessage(), arguments.get(1));
        }
        if (arguments.size() == 3) {
            try {
                JsonMasking.parse(text(arguments.get(2)));
            } catch (IllegalArgumentException exc) {
                return new Wrong(exc.getMessage(), arguments.get(2));
            }
        }
        return null;
    }

    record Wrong(String message, Expression argument) { }

    private static String text(Expression argument) {
        return ((Literal) argument).value().toString();
    }

    private static Expression make(String name, List<Expression> arguments) {
        JsonPath path = JsonPath.parse(text(arguments.get(1)));
        Expression value = arguments.get(0);
        if (value.dataType() != BinaryType$.MODULE$) {
            value = new Cast(value, BinaryType$.MODULE$, scala.Option.empty(), Cast.$lessinit$greater$default$4());
        }
        if (name.equals("json_mask")) {
            JsonMask mask = new JsonMask(path, JsonMasking.parse(text(arguments.get(2))));
            return invoke(mask, "apply", BinaryType$.MODULE$, value, false);
        }
        JsonRead read = new JsonRead(path);
        return switch (name) {
            case "json_text" -> invoke(read, "text", StringType$.MODULE$, value, true);
            case "json_int" -> invoke(read, "integer", LongType$.MODULE$, value, true);
            default -> invoke(read, "has", BooleanType$.MODULE$, value, false);
        };
    }

    private static Expression invoke(Object target, String method, DataType type, Expression value, boolean maybeNull) {
        Literal object = Literal.fromObject(target, new ObjectType(target.getClass()));
        List<AbstractDataType> types = new ArrayList<>(List.of(BinaryType$.MODULE$));
        return new Invoke(object, method, type, Scala.seq(List.of(value)), Scala.seq(types), true, maybeNull, true);
    }
}
