"""Whatever stands in a file, it loads or is refused with a place and a sentence: never another error."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_config import ConfigurationError, Problem, load
from lockstep_config.keys.client_keys import CLIENT, CONNECTION
from lockstep_config.keys.mm2_keys import KEYS

SAMPLE = (Path(__file__).parent / "files" / "active_active.properties").read_text(encoding="utf-8").splitlines()
FEW = settings(max_examples=150, deadline=None)

names = st.sampled_from(
    [
        *KEYS,
        *CONNECTION,
        *(f"{kind}.{name}" for kind, keys in CLIENT.items() for name in keys),
        "x",
        "bootstrap.servers",
    ]
)
prefixes = st.sampled_from(
    ["", "A.", "B.", "A->B.", "B->A.", "A->C.", "A->B.source.", "A->B.target.cluster.", "A->B.producer.override.", "C."]
)
values = st.one_of(
    st.sampled_from(
        ["", "true", "false", "-1", "0", "1", "A, B", "a:1", ".*", "(", "SASL_SSL", "SSL", "PLAIN", "${env:X}"]
    ),
    st.text(max_size=12),
)
lines = st.builds("{}{} = {}".format, prefixes, names, values)


def judge(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mm2.properties"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            loaded = load(path, {"EU_PASSWORD": "p"})
        except ConfigurationError as exc:
            refused: tuple[Problem, ...] = exc.problems
        else:
            assert {flow.flow.source for flow in loaded.flows} <= set(loaded.clusters)
            return
    assert all(problem.message and (problem.line or problem.key) for problem in refused)


@FEW
@given(st.lists(lines, max_size=8))
def test_any_known_key_with_any_value_in_any_place(extra: list[str]) -> None:
    judge("\n".join(["clusters = A, B", "A.bootstrap.servers = a:1", "B.bootstrap.servers = b:1", *extra]))


@FEW
@given(st.data())
def test_a_real_file_with_lines_cut_moved_and_mangled(data: st.DataObject) -> None:
    text = list(SAMPLE)
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(text) - 1))
        match data.draw(st.sampled_from(["cut", "drop", "repeat", "insert"])):
            case "cut":
                text[index] = text[index][: data.draw(st.integers(0, len(text[index])))]
            case "drop":
                del text[index]
            case "repeat":
                text.append(text[index])
            case _:
                text[index] += data.draw(st.text(max_size=5))
    judge("\n".join(text))
