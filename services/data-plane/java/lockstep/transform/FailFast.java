package lockstep.transform;

import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.CreateMap;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.runtime.AbstractPartialFunction;

/**
 * Adds {@code map('mode', 'FAILFAST')} to each {@code from_json} that has no options, so that text that is no JSON is a
 * failed record. Spark would make NULL of it, which a filter drops.
 */
final class FailFast extends AbstractPartialFunction<Expression, Expression> {
    private FailFast() { }

    static LogicalPlan rewrite(LogicalPlan parsed) {
        return parsed.transformAllExpressions(new FailFast());
    }

    @Override
    public boolean isDefinedAt(Expression expression) {
        return expression instanceof UnresolvedFunction function
            && Scala.list(function.nameParts()).get(0).equalsIgnoreCase("from_json")
            && Scala.list(function.arguments()).size() == 2;
    }

    @Override
    public Expression apply(Expression expression) {
        UnresolvedFunction function = (UnresolvedFunction) expression;
        List<Expression> arguments = Scala.list(function.arguments());
        Expression mode = Literal$.MODULE$.apply("mode");
        arguments.add(new CreateMap(Scala.seq(List.of(mode, Literal$.MODULE$.apply("FAILFAST"))), false));
        return new UnresolvedFunction(function.nameParts(), Scala.seq(arguments), function.isDistinct(),
            function.filter(), function.ignoreNulls(), function.orderingWithinGroup(), function.isInternal());
    }
}
