"""Which clusters a slot leaves to its driver, to say that they are away."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep_config import load
from lockstep_data_plane.slot import SlotSpec
from lockstep_protocol.names import Flow

FILE = "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"
OTHER_LOGIN = "B.producer.security.protocol = SSL\n"


@pytest.mark.parametrize(
    ("lines", "beside", "left"),
    [("", True, {"A", "B"}), ("", False, set()), (OTHER_LOGIN, True, {"A"})],
)
def test_the_driver_says_what_it_reaches_as_its_slots_do(
    tmp_path: Path, lines: str, beside: bool, left: set[str]
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE + lines)
    settings = load(file, {}).flow(Flow("A", "B"))
    assert SlotSpec(settings=settings, slot=0, run="r", producer_id=1, beside_driver=beside).driver_says == left
