"""The bindings on the target that Lockstep deletes: its own, which the source has revoked (decision 0023). Pure.

A round calls `review`, then `RevocationHistory.with_reading`, then `deletions`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from lockstep_state.acl_binding import AclBinding
from lockstep_state.rows.state_rows import CopiedAcl

MIN_REVOKED_S = 3.0
"""Seconds between the first reading of the source that misses a binding and the one that counts. A broker may learn
late of a grant, and one reading alone is not believed."""

RELEASED = "released"
"""The phase of a row about a binding that is not ours any more."""


@dataclass(frozen=True, slots=True)
class OwnedBinding:
    """A binding on the target that is ours, and the source name of the resource that it was copied from."""

    binding: AclBinding
    source_name: str

    @property
    def keeps_its_name(self) -> bool:
        """The name is the same on the source, so another flow could have copied the binding too."""
        return self.binding.name == self.source_name

    def origins(self) -> tuple[AclBinding, ...]:
        """Return the source bindings that it may be a copy of (ALLOW ALL is copied as ALLOW READ)."""
        origin = replace(self.binding, name=self.source_name)
        if (origin.permission, origin.operation) == ("ALLOW", "READ"):
            return origin, replace(origin, operation="ALL")
        return (origin,)


def owned_bindings(rows: Iterable[CopiedAcl]) -> list[OwnedBinding]:
    """Return all bindings that are ours by these rows, including those being deleted."""
    return [OwnedBinding(_binding(row), row.source_name) for row in rows if row.phase != RELEASED]


def _binding(row: CopiedAcl) -> AclBinding:
    return AclBinding(**{word.name: getattr(row, word.name) for word in fields(AclBinding)})


@dataclass(frozen=True, slots=True)
class Review:
    """Our bindings that are not expected on the target any more.

    One that the source still grants is in none of these, selected or not.
    """

    gone: tuple[OwnedBinding, ...] = ()
    """Bindings that the target does not have any more."""
    revoked: tuple[OwnedBinding, ...] = ()
    """Bindings on the target whose origin the source does not have any more."""
    silent: tuple[OwnedBinding, ...] = ()
    """Bindings like `revoked`, of resource types without any binding on the source, which may have lost them."""


def review(
    owned: Iterable[OwnedBinding],
    source: Collection[AclBinding],
    target: Collection[AclBinding],
    expected: Collection[AclBinding],
    resources: Collection[str],
) -> Review:
    """Compare our bindings with a complete reading of both sides about `resources`, and with the expected ones."""
    covered = {binding.resource for binding in source}
    gone: list[OwnedBinding] = []
    revoked: list[OwnedBinding] = []
    silent: list[OwnedBinding] = []
    for own in owned:
        binding = own.binding
        if binding.resource not in resources or binding in expected:
            continue
        if binding not in target:
            gone.append(own)
        elif not any(origin in source for origin in own.origins()):
            (revoked if binding.resource in covered else silent).append(own)
    return Review(tuple(gone), tuple(revoked), tuple(silent))


@dataclass(frozen=True, slots=True)
class RevocationHistory:
    """The time since when each binding was revoked in every reading of one leadership term."""

    term: int = 0
    since: Mapping[AclBinding, float] = field(default_factory=dict)
    """Monotonic seconds."""

    def with_reading(self, term: int, now: float, revoked: Iterable[OwnedBinding]) -> "RevocationHistory":
        """Return the history after one more reading.

        A reading of another term begins a new history, and a binding that is not revoked is dropped.
        """
        since = self.since if term == self.term else {}
        return RevocationHistory(term, {own.binding: since.get(own.binding, now) for own in revoked})

    def is_settled(self, binding: AclBinding, now: float) -> bool:
        since = self.since.get(binding)
        return since is not None and now - since >= MIN_REVOKED_S


@dataclass(frozen=True, slots=True)
class Deletions:
    """The bindings to delete now, and sentences for the operator about those that stay."""

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
    """Return the revoked bindings that two readings agree on, and notes about the others.

    Nothing is deleted if more than `limit` bindings are revoked. `shared` names the other flows that may bring a
    binding that keeps its name to the target. Such bindings stay.
    """
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
