package lockstep.transform;

import java.util.ArrayList;
import java.util.List;
import scala.Option;
import scala.collection.immutable.List$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Scala's collections as Java's, and back. */
final class Scala {
    private Scala() { }

    static <T> List<T> list(scala.collection.Iterable<T> items) {
        return new ArrayList<>(CollectionConverters.asJavaCollection(items));
    }

    static <T> Seq<T> seq(List<T> items) {
        return List$.MODULE$.from(CollectionConverters.asScala(items));
    }

    static int number(Option<?> option, int otherwise) {
        return option.isDefined() && option.get() instanceof Number number ? number.intValue() : otherwise;
    }
}
