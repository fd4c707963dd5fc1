"""A slot that looks at the certificates of its own host."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_config import FlowSettings
from lockstep_data_plane.slot import certificate_watch
from lockstep_data_plane.slot.certificate_watch import CertificateWatch
from lockstep_runtime.telemetry.log import FlowLog
from tests.support.flow_context import flow_settings


class Scene:
    def __init__(self, folder: Path, *, named: bool = True) -> None:
        self.key = folder / "user.pem"
        self.key.write_text("one")
        self.taken = True
        settings = flow_settings(folder)
        if named:
            keystore = {"ssl.keystore.location": str(self.key)}
            settings = replace(settings, clients=replace(settings.clients, source_consumer=keystore))
        self.certificates = CertificateWatch(settings, FlowLog("data-plane", "A->B"))
        self.changed = asyncio.Event()

    async def unusable(self, alias: str, settings: FlowSettings, side: str) -> str:
        return "" if self.taken else "the broker knows us not"


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(tmp_path)
    monkeypatch.setattr(certificate_watch, "CHECK_INTERVAL_S", 0.01)
    monkeypatch.setattr(certificate_watch, "try_each", made.unusable)
    return made


async def test_certificate_watch_reports_new_accepted_certificates(scene: Scene) -> None:
    looking = asyncio.create_task(scene.certificates.watch(scene.changed))
    await asyncio.sleep(0.05)
    assert not scene.certificates.renewed
    scene.key.write_text("two")
    await asyncio.wait_for(looking, 5.0)
    assert scene.changed.is_set()
    assert scene.certificates.renewed
    assert not scene.certificates.renewed_for(5.0)
    assert scene.certificates.renewed_for(0.0)


async def test_certificate_watch_waits_for_certificates_that_brokers_accept(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.taken = False
    looking = asyncio.create_task(scene.certificates.watch(scene.changed))
    scene.key.write_text("two")
    await asyncio.sleep(0.2)
    assert not scene.certificates.renewed
    assert caplog.messages == ["certificates not taken up"]
    scene.taken = True
    await asyncio.wait_for(looking, 5.0)
    assert scene.certificates.renewed


async def test_certificate_watch_without_files_reads_nothing(tmp_path: Path) -> None:
    certificates = Scene(tmp_path, named=False).certificates
    await asyncio.wait_for(certificates.watch(asyncio.Event()), 1.0)
    assert not certificates.renewed
