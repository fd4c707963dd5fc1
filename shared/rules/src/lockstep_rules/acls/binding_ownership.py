"""Which bindings on the target are taken back: ours alone, of which the source has nothing any more (decision 0023).

Pure. The order in a round: `review` what there is, `RevocationHistory.then` remember since when, `deletions` decide.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from lockstep_state.acl_binding import AclBinding
from lockstep_state.rows.state_rows import CopiedAcl

LOOKS_APART = 3.0
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
    for one in owned:
        binding = one.binding
        if binding.resource not in resources or binding in wanted:
            continue
        if binding not in target:
            gone.append(one)
        elif not any(origin in source for origin in one.origins()):
            (revoked if binding.resource in covered else silent).append(one)
    return Review(tuple(gone), tuple(revoked), tuple(silent))


@dataclass(frozen=True, slots=True)
class RevocationHistory:
    """Since when each binding has been found revoked at every look, in one term of ours."""

    term: int = 0
    since: Mapping[AclBinding, float] = field(default_factory=dict)
    """On a monotonic clock, seconds."""

    def then(self, term: int, now: float, revoked: Iterable[OwnedBinding]) -> "RevocationHistory":
        """With one more look. One of another term, or one that finds a binding not revoked, begins it anew."""
        known = self.since if term == self.term else {}
        return RevocationHistory(term, {one.binding: known.get(one.binding, now) for one in revoked})

    def settled(self, binding: AclBinding, now: float) -> bool:
        since = self.since.get(binding)
        return since is not None and now - since >= LOOKS_APART


@dataclass(frozen=True, slots=True)
class Deletions:
    """What is taken back now, and why other things are not: sentences for the operator."""

    due: tuple[OwnedBinding, ...] = ()
    notes: tuple[str, ...] = ()


def deletions(
    found: Review,
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
    bound = [one for one in found.revoked if one.keeps_its_name and shared]
    ours = [one for one in found.revoked if not (one.keeps_its_name and shared)]
    notes = []
    if found.silent:
        notes.append(
            f"{source} has no ACLs about {_resources(found.silent)} at all, so Lockstep leaves {_count(found.silent)} "
            f"that it made on {target}. A cluster that lost its ACLs revokes nothing. To revoke them, delete them there"
        )
    if bound:
        notes.append(
            f"Lockstep leaves {_count(bound)} on {target} that {source} revoked. The names are the same there, and "
            f"{', '.join(shared)} may need these ACLs or copy them back. Delete them on all of these clusters"
        )
    if len(ours) > limit:
        notes.append(
            f"Lockstep leaves {_count(ours)} on {target} that {source} revoked: that is more than "
            f"lockstep.acls.delete.max={limit} at once; if it is meant, start acl-sync once with {len(ours)}"
        )
        return Deletions((), tuple(notes))
    due = tuple(one for one in ours if history.settled(one.binding, now))
    return Deletions(due, tuple(notes))


def _count(found: Sequence[OwnedBinding]) -> str:
    return "one binding" if len(found) == 1 else f"{len(found)} bindings"


def _resources(found: Sequence[OwnedBinding]) -> str:
    return " and ".join(sorted({f"{one.binding.resource.lower()}s" for one in found}))
