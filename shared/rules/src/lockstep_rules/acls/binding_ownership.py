"""Which bindings on the target are taken back: ours alone, of which the source has nothing any more (decision 0023).

Pure. The order in a round: `review` what there is, `RevocationHistory.then` remember since when, `deletions` decide.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from lockstep_state.acl_binding import AclBinding
from lockstep_state.rows.state_rows import CopiedAcl

MIN_REVOKED_S = 3.0
"""Seconds between the first reading of the source that misses a binding and the one that counts. A broker that learns
late of what was granted is not believed, nor one reading alone."""

RELEASED = "released"
"""The phase of a row about what is not ours any more."""


@dataclass(frozen=True, slots=True)
class OwnedBinding:
    """A binding on the target that is ours, and the name of what it was copied from on the source."""

    binding: AclBinding
    source_name: str

    @property
    def keeps_its_name(self) -> bool:
        """So another flow could have brought it just as well."""
        return self.binding.name == self.source_name

    def origins(self) -> tuple[AclBinding, ...]:
        """The source's bindings any of which it may be a copy of (ALLOW ALL is copied as ALLOW READ)."""
        same = replace(self.binding, name=self.source_name)
        if (same.permission, same.operation) == ("ALLOW", "READ"):
            return same, replace(same, operation="ALL")
        return (same,)


def owned_bindings(rows: Iterable[CopiedAcl]) -> list[OwnedBinding]:
    """All that is ours by these rows, also what is just being taken back."""
    return [OwnedBinding(_binding(row), row.source_name) for row in rows if row.phase != RELEASED]


def _binding(row: CopiedAcl) -> AclBinding:
    return AclBinding(**{word.name: getattr(row, word.name) for word in fields(AclBinding)})


@dataclass(frozen=True, slots=True)
class Review:
    """Ours that are not wanted any more, sorted out. What the source still grants is in none, whether or not the
    filters select it now."""

    gone: tuple[OwnedBinding, ...] = ()
    """Not on the target any more: no longer ours."""
    revoked: tuple[OwnedBinding, ...] = ()
    """On the target, and the source has no more what it was copied from."""
    silent: tuple[OwnedBinding, ...] = ()
    """As `revoked`, but the source has no binding at all about such resources: it may have lost them."""


def review(
    owned: Iterable[OwnedBinding],
    source: Collection[AclBinding],
    target: Collection[AclBinding],
    wanted: Collection[AclBinding],
    resources: Collection[str],
) -> Review:
    """Hold what is ours against a complete reading of both sides about `resources`, and what belongs on the target."""
    covered = {binding.resource for binding in source}
    gone: list[OwnedBinding] = []
    revoked: list[OwnedBinding] = []
    silent: list[OwnedBinding] = []
    for own in owned:
        binding = own.binding
        if binding.resource not in resources or binding in wanted:
            continue
        if binding not in target:
            gone.append(own)
        elif not any(origin in source for origin in own.origins()):
            (revoked if binding.resource in covered else silent).append(own)
    return Review(tuple(gone), tuple(revoked), tuple(silent))


@dataclass(frozen=True, slots=True)
class RevocationHistory:
    """Since when each binding has been found revoked at every look, in one term of ours."""

    term: int = 0
    since: Mapping[AclBinding, float] = field(default_factory=dict)
    """On a monotonic clock, seconds."""

    def with_reading(self, term: int, now: float, revoked: Iterable[OwnedBinding]) -> "RevocationHistory":
        """With one more look. One of another term, or one that finds a binding not revoked, begins it anew."""
        since = self.since if term == self.term else {}
        return RevocationHistory(term, {own.binding: since.get(own.binding, now) for own in revoked})

    def is_settled(self, binding: AclBinding, now: float) -> bool:
        since = self.since.get(binding)
        return since is not None and now - since >= MIN_REVOKED_S


@dataclass(frozen=True, slots=True)
class Deletions:
    """What is taken back now, and why other things are not: sentences for the operator."""

    due: tuple[OwnedBinding, ...] = ()
    notes: tuple[str, ...] = ()


def deletions(
    reviewed: Review,
    history: RevocationHistory,
    now: float,
    *,
    limit: int,
    shared: Sequence[str],
    source: str,
    target: str,
) -> Deletions:
    """What of `found.revoked` two readings agree on, but nothing where it is more than `limit` in all. `shared` names
    the other flows that may bring to the target what keeps its name: such bindings stay."""
    kept = [own for own in reviewed.revoked if own.keeps_its_name and shared]
    deletable = [own for own in reviewed.revoked if not (own.keeps_its_name and shared)]
    notes = []
    if silent := reviewed.silent:
        notes.append(
            f"{source} has no ACLs about {_resources(silent)} at all, so Lockstep leaves {_count(silent)} "
            f"that it made on {target}. A cluster that lost its ACLs revokes nothing. To revoke them, delete them there"
        )
    if kept:
        notes.append(
            f"Lockstep leaves {_count(kept)} on {target} that {source} revoked. The names are the same there, and "
            f"{', '.join(shared)} may need these ACLs or copy them back. Delete them on all of these clusters"
        )
    if len(deletable) > limit:
        notes.append(
            f"Lockstep leaves {_count(deletable)} on {target} that {source} revoked: that is more than "
            f"lockstep.acls.delete.max={limit} at once; if it is meant, start acl-sync once with {len(deletable)}"
        )
        return Deletions((), tuple(notes))
    due = tuple(own for own in deletable if history.is_settled(own.binding, now))
    return Deletions(due, tuple(notes))


def _count(bindings: Sequence[OwnedBinding]) -> str:
    return "one binding" if len(bindings) == 1 else f"{len(bindings)} bindings"


def _resources(bindings: Sequence[OwnedBinding]) -> str:
    return " and ".join(sorted({f"{own.binding.resource.lower()}s" for own in bindings}))
