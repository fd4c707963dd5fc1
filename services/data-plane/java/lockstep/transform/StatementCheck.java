package lockstep.transform;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.types.DatetimeType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What a statement may be: a SELECT over one relation, {@code records}, whose result depends on the record alone.
 *
 * <p>The parsed plan is checked before Spark analyses it, as analysis reads the files that a FROM names.
 */
final class StatementCheck {
    static final String RELATION = "records";

    private static final Pattern CLOCK_WORD = Pattern.compile("\\s*(now|today|tomorrow|yesterday)\\b.*",
        Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
    private static final Pattern CLOCK_LITERAL = Pattern.compile("\\w+\\s*(r?['\"])" + CLOCK_WORD.pattern(),
        CLOCK_WORD.flags());

    private static final Set<String> ANALYSED_NODES = Set.of("Project", "Filter", "SubqueryAlias", "View", "LogicalRDD",
        "WithCTE", "CTERelationDef", "CTERelationRef");

    private static final Map<String, String> CLAUSES = Map.ofEntries(
        Map.entry("Join", "a JOIN"), Map.entry("Aggregate", "GROUP BY"), Map.entry("Sort", "ORDER BY"),
        Map.entry("GlobalLimit", "LIMIT"), Map.entry("LocalLimit", "LIMIT"), Map.entry("LimitAll", "LIMIT"),
        Map.entry("Offset", "OFFSET"), Map.entry("Tail", "LIMIT"), Map.entry("Distinct", "DISTINCT"),
        Map.entry("Union", "UNION"), Map.entry("Except", "EXCEPT"), Map.entry("Intersect", "INTERSECT"),
        Map.entry("Generate", "LATERAL VIEW"), Map.entry("UnresolvedHint", "a hint"),
        Map.entry("Sample", "TABLESAMPLE"),
        Map.entry("UnresolvedHaving", "HAVING"), Map.entry("WithWindowDefinition", "WINDOW"),
        Map.entry("RepartitionByExpression", "DISTRIBUTE BY"), Map.entry("Pivot", "PIVOT"),
        Map.entry("UnresolvedTableValuedFunction", "a table function"), Map.entry("UnresolvedInlineTable", "VALUES"),
        Map.entry("RelationTimeTravel", "a version of a table"), Map.entry("OneRowRelation", "a SELECT without FROM"));

    private final String statement;
    final List<Finding> findings = new ArrayList<>();

    StatementCheck(String statement) {
        this.statement = statement;
    }

    /** Checks the plan as Spark's parser makes it. */
    void checkParsed(LogicalPlan plan) {
        checkParsed(plan, Set.of());
    }

    private void checkParsed(LogicalPlan plan, Set<String> outer) {
        Set<String> relations = outer;
        if (plan instanceof UnresolvedWith with) {
            relations = new HashSet<>(outer);
            for (var cte : Scala.list(with.cteRelations())) {
                String name = cte._1().toLowerCase(Locale.ROOT);
                if (name.equals(RELATION) || with.allowRecursion()) {
                    add("CLAUSE_NOT_ALLOWED", plan.origin(),
                        "a WITH is not recursive, and names no query " + RELATION, "");
                }
                checkParsed(cte._2(), relations);
                relations.add(name);
            }
        } else if (plan instanceof UnresolvedRelation relation) {
            checkRelation(relation, relations);
        } else if (!(plan instanceof Project || plan instanceof Filter || plan instanceof SubqueryAlias)) {
            refuseNode(plan);
        }
        for (Expression expression : Scala.list(plan.expressions())) {
            checkParsed(expression);
        }
        for (LogicalPlan child : Scala.list(plan.children())) {
            checkParsed(child, relations);
        }
    }

    private void checkRelation(UnresolvedRelation relation, Set<String> relations) {
        List<String> name = Scala.list(relation.multipartIdentifier());
        String only = name.size() == 1 ? name.get(0).toLowerCase(Locale.ROOT) : "";
        if (!only.equals(RELATION) && !relations.contains(only)) {
            add("RELATION_NOT_ALLOWED", relation.origin(), "the only relation is " + RELATION, "FROM " + RELATION);
        } else if (relation.isStreaming() || !relation.options().isEmpty()) {
            add("CLAUSE_NOT_ALLOWED", relation.origin(), RELATION + " takes no options", "FROM " + RELATION);
        }
    }

    private void refuseNode(LogicalPlan plan) {
        String kind = plan.getClass().getSimpleName();
        String clause = CLAUSES.getOrDefault(kind, plan.nodeName());
        add("CLAUSE_NOT_ALLOWED", plan.origin(), clause + " is not possible: a statement sees one record",
            "SELECT ... FROM " + RELATION + " WHERE ...");
    }

    private void checkParsed(Expression expression) {
        if (expression instanceof PlanExpression) {
            add("SUBQUERY_NOT_ALLOWED", expression.origin(),
                "a subquery is not possible: a statement sees one record", "");
            return;
        }
        if (expression.getClass().getSimpleName().contains("Window")) {
            add("CLAUSE_NOT_ALLOWED", expression.origin(), "a window is not possible: a statement sees one record", "");
            return;
        }
        if (expression instanceof UnresolvedFunction function) {
            checkFunction(function);
        }
        // TIMESTAMP 'now' is a number by now.
        if (expression instanceof Literal && CLOCK_LITERAL.matcher(fragment(expression.origin())).matches()) {
            refuseClock(expression.origin());
        }
        for (Expression child : Scala.list(expression.children())) {
            checkParsed(child);
        }
    }

    private void checkFunction(UnresolvedFunction function) {
        String name = String.join(".", Scala.list(function.nameParts())).toLowerCase(Locale.ROOT);
        if (NameList.REFUSED_FUNCTIONS.contains(name)) {
            add("FUNCTION_NOT_ALLOWED", function.origin(),
                name + " is not possible: its result depends on more than the record, or is no single value", "");
        } else if (JsonFunctions.ARGUMENTS.containsKey(name)) {
            JsonFunctions.Wrong wrong = JsonFunctions.check(name, Scala.list(function.arguments()));
            if (wrong != null) {
                Expression meant = wrong.argument() == null ? function : wrong.argument();
                Origin origin = meant.origin().startIndex().isDefined() ? meant.origin() : function.origin();
                add("ARGUMENT_INVALID", origin, wrong.message(), "");
            }
        } else if (!NameList.ALLOWED_FUNCTIONS.contains(name)) {
            Set<String> names = new HashSet<>(NameList.ALLOWED_FUNCTIONS);
            names.addAll(JsonFunctions.ARGUMENTS.keySet());
            add("FUNCTION_UNKNOWN", function.origin(), "there is no function " + name, NameList.closest(name, names));
        } else if (function.isDistinct() || function.filter().isDefined() || function.ignoreNulls().isDefined()) {
            add("CLAUSE_NOT_ALLOWED", function.origin(), "DISTINCT, FILTER and IGNORE NULLS are for aggregates", "");
        }
    }

    /** Checks the plan as Spark has analysed it. */
    void checkAnalysed(LogicalPlan plan) {
        String kind = plan.getClass().getSimpleName();
        if (!ANALYSED_NODES.contains(kind)) {
            refuseNode(plan);
        }
        for (Expression expression : Scala.list(plan.expressions())) {
            checkAnalysed(expression);
        }
        for (LogicalPlan child : Scala.list(plan.children())) {
            checkAnalysed(child);
        }
    }

    private void checkAnalysed(Expression expression) {
        String kind = expression.getClass().getSimpleName();
        if (expression instanceof PlanExpression) {
            add("SUBQUERY_NOT_ALLOWED", expression.origin(),
                "a subquery is not possible: a statement sees one record", "");
            return;
        }
        if (!NameList.ALLOWED_EXPRESSIONS.contains(kind) || !expression.deterministic()) {
            add("EXPRESSION_NOT_ALLOWED", expression.origin(),
                kind + " is not possible: its result depends on more than the record", "");
            return;
        }
        if (readsClock(expression)) {
            refuseClock(expression.origin());
        }
        if (expression instanceof JsonToStructs json) {
            String mode = CollectionConverters.asJava(json.options()).getOrDefault("mode", "");
            if (!mode.equalsIgnoreCase("FAILFAST")) {
                add("FROM_JSON_NOT_FAILFAST", expression.origin(),
                    "from_json makes NULL of what is no JSON, and a filter then drops it", "map('mode', 'FAILFAST')");
            }
        }
        for (Expression child : Scala.list(expression.children())) {
            checkAnalysed(child);
        }
    }

    /** Whether a text such as 'today' becomes a time, here or in what Spark puts in the expression's place. */
    private static boolean readsClock(Expression expression) {
        if (expression instanceof Cast cast && cast.dataType() instanceof DatetimeType && cast.child().foldable()
                && cast.child().dataType() instanceof StringType && cast.child().eval(null) instanceof UTF8String text
                && CLOCK_WORD.matcher(text.toString()).matches()) {
            return true;
        }
        return expression instanceof RuntimeReplaceable replaceable && anyReadsClock(replaceable.replacement());
    }

    private static boolean anyReadsClock(Expression expression) {
        return readsClock(expression) || !expression.deterministic()
            || Scala.list(expression.children()).stream().anyMatch(StatementCheck::anyReadsClock);
    }

    private void refuseClock(Origin origin) {
        add("EXPRESSION_NOT_ALLOWED", origin,
            "the clock is not possible: the result depends on more than the record", "");
    }

    private String fragment(Origin origin) {
        int from = Scala.number(origin.startIndex(), 0);
        int to = Scala.number(origin.stopIndex(), -1);
        return to >= from && to < statement.length() ? statement.substring(from, to + 1) : "";
    }

    void add(String code, Origin origin, String message, String suggestion) {
        Finding finding = new Finding(code, Scala.number(origin.line(), 0),
            Scala.number(origin.startPosition(), -1) + 1, fragment(origin), message, "", suggestion);
        if (!findings.contains(finding)) {
            findings.add(finding);
        }
    }

    void add(Finding... more) {
        findings.addAll(Arrays.asList(more));
    }
}
