package lockstep.transform;

import java.util.List;

/** What became of a statement: stages, or findings. */
public final class Compilation {
    private final List<Finding> findings;
    private final TransformStages stages;

    Compilation(List<Finding> findings, TransformStages stages) {
        this.findings = List.copyOf(findings);
        this.stages = stages;
    }

    public List<Finding> getFindings() {
        return findings;
    }

    /** The stages for the slots, as Java writes them. */
    public byte[] getStages() {
        return stages.serialize();
    }

    /** The stages as text that is the same in every JVM. */
    public String getCanonicalText() {
        return PlanText.of(stages);
    }

    public List<String> getColumnsRead() {
        return stages.read;
    }

    public List<String> getColumnsWritten() {
        return stages.written;
    }

    /** Whether the statement has a condition that a record may fail. */
    public boolean hasFilter() {
        return stages.stages.stream().anyMatch(stage -> stage.condition != null);
    }

    /** The names of the secrets that the slots have to send. */
    public List<String> getSecrets() {
        return stages.secrets();
    }
}
