"""A partition that a real data plane has halted is decided from the page, and its copy goes on."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.conftest import Pair
from tests.support.browser import NO_BROWSER, Chromium, find_browser
from tests.support.clusters import Record, create_topic, delete_records, produce
from tests.support.console_page import ConsolePage
from tests.support.console_process import TOKEN, ConsoleProcess
from tests.support.eventually import eventually, wait_until
from tests.support.mirror import COPIED_WITHIN, Mirror, MirroredFlow
from tests.support.services import COPY_ONLY

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

COPIED, DELETED_BEFORE, WRITTEN = 50, 90, 150


def numbered(first: int, last: int) -> list[Record]:
    return [Record(value=b"%d" % number, partition=0) for number in range(first, last)]


@pytest.fixture
def mirror(tmp_path: Path, pair: Pair) -> Iterator[Mirror]:
    """A flow of one slot, whose services reach the source through its proxy."""
    if find_browser() is None:
        pytest.skip(NO_BROWSER)
    assert pair.a.proxy is not None
    source, target = (pair.a.bootstrap, pair.a.proxy.bootstrap), (pair.b.bootstrap, pair.b.bootstrap)
    with Mirror.one_flow(tmp_path, f"decide{uuid.uuid4().hex[:6]}", source, target, *COPY_ONLY) as running:
        yield running


def halted_topic(pair: Pair, there: MirroredFlow) -> str:
    """Return a topic whose copy is halted, because its next records are gone from the source."""
    assert pair.a.proxy is not None
    topic = create_topic(there.source, f"{there.flow.source.removeprefix('s')}-orders")
    produce(there.source, topic, numbered(0, COPIED))
    there.wait_written_down(topic)
    pair.a.proxy.refuse()
    try:
        produce(there.source, topic, numbered(COPIED, WRITTEN))
        delete_records(there.source, topic, DELETED_BEFORE)
    finally:
        pair.a.proxy.heal()
    wait_until(
        lambda: there.progress(topic)[0].phase == "halted", within=COPIED_WITHIN, every=0.25, what=f"{topic} is halted"
    )
    return topic


async def test_halted_partition_is_decided_from_the_page(chromium: Chromium, pair: Pair, mirror: Mirror) -> None:
    there = mirror.flow
    topic = halted_topic(pair, there)
    with ConsoleProcess(mirror.config, token=TOKEN) as console:
        console.wait_ready()
        async with chromium.open(console.address) as watched:
            page = ConsolePage(watched)
            await page.show("overview")
            await page.sees(f"partition {topic}-0")
            await page.sees("records-gone")
            card = page.page.locator("li.decision", has_text=f"{topic}-0")
            for words in ("50", "89"):
                await expect(card).to_contain_text(words)
            await page.sign_in(TOKEN)
            skip = card.get_by_role("button").filter(has_text="kip")
            await expect(skip).to_have_count(1)
            title = (await skip.inner_text()).strip()
            dialog = await page.act(title, within=card)
            await expect(dialog.locator(".outcome .state").first).to_contain_text("done", timeout=60_000)
            for words in ("data-plane: offsets altered", "topic-sync: resumed", "stop: topic-sync: stopped"):
                await expect(dialog.locator(".outcome")).to_contain_text(words)
            await dialog.get_by_role("button", name="Close").click()
            await expect(card).to_have_count(0, timeout=60_000)
    altered = there.wait_event("OffsetsAltered")
    assert "token" in altered.detail["by"], "the event says who asked"

    def copied() -> bool:
        return [record.value for record in there.copy_of(topic)] == [
            record.value for record in [*numbered(0, COPIED), *numbered(DELETED_BEFORE, WRITTEN)]
        ]

    await eventually(copied, within=COPIED_WITHIN, every=0.25, what="the copy goes on behind the gap")
