"""A kind of hazard of a plan, which finds its subjects in the facts of a flow. Pure."""

from dataclasses import dataclass, field

from lockstep_ops.findings.finding_kind import FindingKind
from lockstep_ops.plan.rules.flow_facts import FlowFacts
from lockstep_ops.plan.rules.flow_plan import CopyForecast, PlanHazard
from lockstep_ops.plan.rules.hazard_checks import Check


@dataclass(frozen=True, slots=True)
class HazardKind(FindingKind):
    """A kind of hazard, and how it is found. `fix` has no full stop, as the plan shows it."""

    FAMILY = "hazard of lockstep plan"
    PAGE = "docs/reference/plan-hazards.md"

    find: Check = field(kw_only=True)

    @property
    def anchor(self) -> str:
        """Return the anchor of its section, which has its code and its title as heading."""
        return self.heading.lower().replace(" ", "-")

    @property
    def heading(self) -> str:
        """Return the heading of its section."""
        return f"{self.code} {self.title}"

    def judge(self, facts: FlowFacts, copy: CopyForecast) -> PlanHazard | None:
        """Return the hazard with all subjects that have it, each once; None: no subject has it."""
        places = tuple(self.find(facts, copy))
        if not places:
            return None
        return PlanHazard(
            code=self.code,
            title=self.title,
            severity=self.severity,
            subjects=tuple(dict.fromkeys(subject for subject, _ in places)),
            details=tuple(sentence for _, sentence in places),
            fix=self.plain_fix,
            page=self.page,
        )
