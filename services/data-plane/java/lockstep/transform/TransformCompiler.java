package lockstep.transform;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkThrowable;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.CurrentUserContext;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;

/** Compiles a statement, in the driver: parsed, checked, analysed, checked, optimised, and taken apart. */
public final class TransformCompiler {
    private static final String SCHEMA = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, "
        + "timestamp TIMESTAMP, timestampType INT, headers ARRAY<STRUCT<key STRING, value BINARY>>";

    /** The settings that change what an expression means, whatever the driver's own are. */
    private static final Map<String, String> PINNED = Map.of(
        "spark.sql.ansi.enabled", "true",
        "spark.sql.caseSensitive", "false",
        "spark.sql.jsonGenerator.ignoreNullFields", "false",
        "spark.sql.session.timeZone", "UTC");

    private static final int LONGEST = 100_000;
    private static final int DEEPEST = 200;

    private final SparkContext context;
    private final Map<String, String> settings = new TreeMap<>(PINNED);
    private final List<SparkSession> sessions = new ArrayList<>();

    public TransformCompiler(JavaSparkContext context) {
        this(context, Map.of());
    }

    /** @param more further settings, for tests */
    public TransformCompiler(JavaSparkContext context, Map<String, String> more) {
        this.context = context.sc();
        settings.putAll(more);
    }

    /** Returns the pinned settings, sorted, one a line. */
    public String getPinnedSettings() {
        StringBuilder lines = new StringBuilder();
        settings.forEach((key, value) -> lines.append(key).append('=').append(value).append('\n'));
        return lines.toString();
    }

    public String getSparkVersion() {
        return context.version();
    }

    public int getJavaMajor() {
        return Runtime.version().feature();
    }

    public String getJarVersion() {
        return jarVersion();
    }

    /** Returns the hash of the sources that this jar was compiled from. */
    public static String jarVersion() {
        try (InputStream in = TransformCompiler.class.getResourceAsStream("version.txt")) {
            return in == null ? "unknown" : new String(in.readAllBytes(), StandardCharsets.US_ASCII).strip();
        } catch (IOException exc) {
            return "unknown";
        }
    }

    /** Compiles one statement. It never throws for what is wrong with the statement. */
    public synchronized Compilation compile(String statement) {
        StatementCheck check = new StatementCheck(statement);
        if (statement.length() > LONGEST || isNestedTooDeeply(statement)) {
            check.add(new Finding("STATEMENT_INVALID", 0, 0, "",
                "the statement is too long, or nested too deeply", "", ""));
            return new Compilation(check.findings, null);
        }
        String user = CurrentUserContext.CURRENT_USER().get();
        SparkSession before = SparkSession.getActiveSession().getOrElse(() -> null);
        try {
            TransformStages stages = compile(statement, session(0), check);
            if (check.findings.isEmpty()) {
                // Another clock, as time has passed; another user, catalog session and database.
                CurrentUserContext.CURRENT_USER().set("another");
                Thread.sleep(2);
                TransformStages again = compile(statement, session(1), new StatementCheck(statement));
                if (!PlanText.of(stages).equals(PlanText.of(again))) {
                    check.add(new Finding("EXPRESSION_NOT_ALLOWED", 0, 0, "",
                        "the statement means something else each time that it is compiled", "", ""));
                }
            }
            return new Compilation(check.findings, stages);
        } catch (InterruptedException exc) {
            throw new IllegalStateException(exc);
        } finally {
            CurrentUserContext.CURRENT_USER().set(user);
            if (before == null) {
                SparkSession.clearActiveSession();
            } else {
                SparkSession.setActiveSession(before);
            }
        }
    }

    /** Whether Spark's parser would take minutes, or its stack. Brackets in texts count too. */
    private static boolean isNestedTooDeeply(String statement) {
        int depth = 0;
        for (int i = 0; i < statement.length(); i++) {
            depth += statement.charAt(i) == '(' ? 1 : statement.charAt(i) == ')' ? -1 : 0;
            if (depth > DEEPEST) {
                return true;
            }
        }
        return false;
    }

    private SparkSession session(int number) {
        if (sessions.isEmpty()) {
            SparkSession shared = SparkSession.builder().sparkContext(context).getOrCreate();
            for (int i = 0; i < 2; i++) {
                SparkSession session = shared.newSession();
                SQLConf conf = session.sessionState().conf();
                conf.clear();
                settings.forEach(conf::setConfString);
                JsonFunctions.register(session.sessionState().functionRegistry());
                session.createDataFrame(new JavaSparkContext(context).<Row>emptyRDD(), StructType.fromDDL(SCHEMA))
                    .createOrReplaceTempView(StatementCheck.RELATION);
                sessions.add(session);
            }
        }
        SparkSession session = sessions.get(number);
        SparkSession.setActiveSession(session);
        return session;
    }

    private TransformStages compile(String statement, SparkSession session, StatementCheck check) {
        try {
            LogicalPlan parsed = session.sessionState().sqlParser().parsePlan(statement);
            check.checkParsed(parsed);
            if (!check.findings.isEmpty()) {
                return null;
            }
            QueryExecution execution = session.sessionState()
                .executePlan(FailFast.rewrite(parsed), session.sessionState().executePlan$default$2());
            execution.assertAnalyzed();
            check.checkAnalysed(execution.analyzed());
            checkOutput(execution.analyzed().output(), check);
            if (!check.findings.isEmpty()) {
                return null;
            }
            return takeApart(execution.optimizedPlan(), execution.analyzed(), check);
        } catch (Exception exc) {
            check.add(exc instanceof SparkThrowable spark ? finding(statement, exc, spark)
                : new Finding("STATEMENT_INVALID", 0, 0, "", sentence(exc), "", ""));
            return null;
        } catch (StackOverflowError error) {
            check.add(new Finding("STATEMENT_INVALID", 0, 0, "", "the statement is nested too deeply", "", ""));
            return null;
        }
    }

    private static Finding finding(String statement, Exception exc, SparkThrowable spark) {
        String condition = spark.getCondition() == null ? "" : spark.getCondition();
        int line = 0;
        int column = 0;
        if (exc instanceof AnalysisException analysis) {
            line = Scala.number(analysis.line(), 0);
            column = Scala.number(analysis.startPosition(), -1) + 1;
        }
        String fragment = "";
        for (var context : spark.getQueryContext()) {
            if (fragment.isEmpty() && context.contextType() == org.apache.spark.QueryContextType.SQL) {
                fragment = context.fragment();
                if (line == 0) {
                    String before = statement.substring(0, Math.min(context.startIndex(), statement.length()));
                    line = (int) before.chars().filter(c -> c == '\n').count() + 1;
                    column = before.length() - before.lastIndexOf('\n');
                }
            }
        }
        Map<String, String> parameters = spark.getMessageParameters();
        String suggestion = parameters.getOrDefault("proposal", parameters.getOrDefault("suggestion", ""));
        return new Finding(code(condition), line, column, fragment, sentence(exc), condition, suggestion);
    }

    private static String code(String condition) {
        if (condition.startsWith("PARSE_") || condition.equals("PARSE_SYNTAX_ERROR")) {
            return "SYNTAX_INVALID";
        }
        if (condition.startsWith("UNRESOLVED_COLUMN") || condition.startsWith("UNRESOLVED_FIELD")
                || condition.equals("FIELD_NOT_FOUND")) {
            return "COLUMN_UNKNOWN";
        }
        if (condition.startsWith("DATATYPE_MISMATCH")) {
            return "TYPE_MISMATCH";
        }
        return condition.startsWith("WRONG_NUM_ARGS") ? "ARGUMENT_INVALID" : "STATEMENT_INVALID";
    }

    /** Spark's message without the plan and the context behind it. */
    private static String sentence(Exception exc) {
        String message = exc instanceof AnalysisException analysis ? analysis.getSimpleMessage() : exc.getMessage();
        message = message == null ? exc.getClass().getSimpleName() : message;
        int end = message.indexOf(" SQLSTATE:");
        return (end < 0 ? message.lines().findFirst().orElse("") : message.substring(0, end)).strip();
    }

    private static void checkOutput(scala.collection.immutable.Seq<Attribute> output, StatementCheck check) {
        Set<String> names = new TreeSet<>();
        for (Attribute column : Scala.list(output)) {
            String name = column.name().toLowerCase(Locale.ROOT);
            if (!TransformStages.COLUMNS.stream().anyMatch(own -> own.equalsIgnoreCase(name))) {
                check.add("COLUMN_NOT_WRITABLE", column.origin(), "a record has no column " + column.name(),
                    "to_json(struct(...)) AS value");
            } else if (!names.add(name)) {
                check.add("COLUMN_TWICE", column.origin(), "the column " + name + " is there twice", "");
            } else if (!fits(name, column.dataType())) {
                check.add("TYPE_MISMATCH", column.origin(),
                    "the column " + name + " cannot be " + column.dataType().sql(), hint(name));
            }
        }
    }

    private static boolean fits(String name, DataType type) {
        return switch (name) {
            case "key", "value" -> type instanceof BinaryType || type instanceof StringType;
            case "timestamp" -> type instanceof TimestampType;
            case "headers" -> type instanceof ArrayType array && array.elementType() instanceof StructType header
                && header.length() == 2 && header.apply(0).dataType() instanceof StringType
                && header.apply(1).dataType() instanceof BinaryType;
            default -> true;
        };
    }

    private static String hint(String name) {
        return switch (name) {
            case "timestamp" -> "CAST(... AS TIMESTAMP) AS timestamp";
            case "headers" -> "ARRAY<STRUCT<key STRING, value BINARY>>";
            default -> "CAST(... AS STRING) AS " + name + ", or to_json(struct(...)) AS " + name;
        };
    }

    /** Takes an optimised plan apart into stages, from the leaf up. */
    private TransformStages takeApart(LogicalPlan optimised, LogicalPlan analysed, StatementCheck check) {
        List<LogicalPlan> nodes = new ArrayList<>();
        LogicalPlan plan = optimised;
        while (plan instanceof Project || plan instanceof Filter) {
            nodes.add(0, plan);
            plan = Scala.list(plan.children()).get(0);
        }
        TransformStages made = new TransformStages();
        made.settings.putAll(settings);
        List<Attribute> leaf = Scala.list(plan.output());
        if (plan instanceof LocalRelation empty && Scala.list(empty.data()).isEmpty()) {
            // The optimiser has seen that no record passes. Tombstones do, and what is made of them is gone from the plan.
            for (Attribute column : changedOfTombstones(analysed)) {
                check.add("CLAUSE_NOT_ALLOWED", column.origin(), "no record can pass the condition, and what becomes of "
                    + column.name() + " of tombstones is not known then", "");
            }
            made.stages.add(new TransformStages.Stage(Literal.FalseLiteral(), null, List.of()));
            return made;
        }
        if (!(plan instanceof LogicalRDD)) {
            check.add("CLAUSE_NOT_ALLOWED", plan.origin(), plan.nodeName() + " is not possible", "");
            return null;
        }
        for (LogicalPlan node : nodes) {
            List<Attribute> input = Scala.list(Scala.list(node.children()).get(0).output());
            if (node instanceof Filter filter) {
                made.stages.add(new TransformStages.Stage(filter.condition(), null, input));
            } else {
                List<Expression> items = new ArrayList<>();
                Scala.list(((Project) node).projectList()).forEach(item -> items.add((Expression) item));
                made.stages.add(new TransformStages.Stage(null, items, input));
            }
        }
        writeOnly(made, Scala.list(optimised.output()), leaf, check);
        for (TransformStages.Stage stage : made.stages) {
            for (Expression expression : stage.expressions()) {
                for (Attribute attribute : leaf) {
                    boolean isRead = expression.references().contains(attribute);
                    if (isRead && !made.read.contains(attribute.name())) {
                        made.read.add(attribute.name());
                    }
                }
            }
        }
        return made;
    }

    /** The columns of a record without a value that a statement may make anew. */
    private static List<Attribute> changedOfTombstones(LogicalPlan analysed) {
        Set<ExprId> own = new HashSet<>();
        for (LogicalPlan leaf : Scala.list(analysed.collectLeaves())) {
            Scala.list(leaf.output()).forEach(column -> own.add(column.exprId()));
        }
        List<Attribute> changed = new ArrayList<>(Scala.list(analysed.output()));
        changed.removeIf(column -> own.contains(column.exprId()) || column.name().equalsIgnoreCase("value"));
        return changed;
    }

    /** Leaves in the last projection what is made anew, and no projection if nothing is. */
    private static void writeOnly(TransformStages made, List<Attribute> output, List<Attribute> leaf,
            StatementCheck check) {
        List<Expression> items = new ArrayList<>();
        for (Attribute column : output) {
            String name = column.name().toLowerCase(Locale.ROOT);
            if (source(column, made.stages, made.stages.size() - 1, leaf).equalsIgnoreCase(name)) {
                continue;
            }
            if (!TransformStages.WRITABLE.contains(name)) {
                check.add("COLUMN_NOT_WRITABLE", column.origin(),
                    "the column " + column.name() + " stays as it is in every record", "");
                continue;
            }
            made.written.add(name);
            items.add((Expression) column);
        }
        int last = made.stages.size() - 1;
        if (last >= 0 && made.stages.get(last).projection != null) {
            TransformStages.Stage stage = made.stages.remove(last);
            items.replaceAll(item -> item(stage, (Attribute) item));
            if (!items.isEmpty()) {
                made.stages.add(new TransformStages.Stage(null, items, stage.input));
            }
        } else if (!items.isEmpty()) {
            made.stages.add(new TransformStages.Stage(null, items, output));
        }
    }

    private static Expression item(TransformStages.Stage stage, Attribute column) {
        for (Expression item : stage.projection) {
            if (((NamedExpression) item).exprId().equals(column.exprId())) {
                return item;
            }
        }
        throw new IllegalStateException(column.name());
    }

    /** The record's own column that this one is, unchanged; "": it is made anew. */
    private static String source(Attribute column, List<TransformStages.Stage> stages, int last, List<Attribute> leaf) {
        Attribute traced = column;
        for (int i = last; i >= 0; i--) {
            if (stages.get(i).projection == null) {
                continue;
            }
            Expression item = item(stages.get(i), traced);
            if (item instanceof Alias alias && alias.child() instanceof AttributeReference reference) {
                traced = reference;
            } else if (item instanceof AttributeReference reference) {
                traced = reference;
            } else {
                return "";
            }
        }
        for (Attribute own : leaf) {
            if (own.exprId().equals(traced.exprId())) {
                return own.name();
            }
        }
        return "";
    }
}
