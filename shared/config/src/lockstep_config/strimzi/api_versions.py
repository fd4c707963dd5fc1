"""The kinds, API groups and API versions of Strimzi's resources, and of IBM's operators, which are Strimzi's."""

from collections.abc import Mapping
from types import MappingProxyType

STRIMZI = "kafka.strimzi.io"
IBM_GROUPS = ("eventstreams.ibm.com", "ibmevents.ibm.com")
"""The groups of IBM's two operators, which are Strimzi's under other names."""
MIRROR_MAKER_2 = "KafkaMirrorMaker2"
MIRROR_MAKER = "KafkaMirrorMaker"

ALPHA, BETA1, BETA, V1 = "v1alpha1", "v1beta1", "v1beta2", "v1"

VERSIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {MIRROR_MAKER_2: (ALPHA, BETA, V1), MIRROR_MAKER: (ALPHA, BETA1, BETA)}
)
"""The API versions of Strimzi's resources, the oldest first."""

API_VERSIONS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        kind: MappingProxyType(
            {f"{group}/{version}": version for group in (STRIMZI, *IBM_GROUPS) for version in versions}
            | {f"{IBM_GROUPS[0]}/{BETA1}": BETA1 if BETA1 in versions else ALPHA}
        )
        for kind, versions in VERSIONS.items()
    }
)
"""The values of `apiVersion`, each with the version of Strimzi whose fields it has.

IBM's own v1beta1 came before v1beta2.
"""

OLD = frozenset({ALPHA, BETA1})
BEFORE_V1 = frozenset({ALPHA, BETA})
BETA_ON = frozenset({BETA, V1})
