"""The console in a real browser, over real state topics: what it shows, whom it lets act, and what it never does."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from playwright.async_api import expect

from lockstep_ops.decisions import UNDER_WAY_MS
from lockstep_ops.switch.switch_options import Allowance
from lockstep_state.commands.decision_steps import SOURCE, step_id, stop_step
from lockstep_state.events import Event
from lockstep_state.names import events_topic, quarantine_topic, state_topic
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import (
    SWITCH_KEY,
    DesiredState,
    GroupStatus,
    MirroredTopic,
    PartitionProgress,
    Switch,
)
from tests.support.browser import DESKTOP, PHONE, Chromium, Scheme, Screen, WatchedPage
from tests.support.clusters import Record, create_topic, produce
from tests.support.console_page import FLOW_SCREENS, ConsolePage
from tests.support.console_process import TOKEN, ConsoleProcess
from tests.support.fleet_scene import RECORDS, FleetScene, now_ms

HOSTILE = '<img src=http://hostile.invalid/x onerror="alert(1)">'
HOSTILE_LINK = "javascript:alert(2)"
HOSTILE_SCRIPT = "</script><script>alert(3)</script>"
SCREENS = ("overview", "clusters", "codes", *FLOW_SCREENS)


async def test_overview_has_a_sentence_for_each_flow_and_links_to_it(
    chromium: Chromium, console: ConsoleProcess, fleet: FleetScene
) -> None:
    async with chromium.open(console.address) as watched:
        page = ConsolePage(watched)
        await page.show("overview")
        for flow in fleet.flows:
            card = page.page.locator("li.flow-line", has=page.page.get_by_role("link", name=str(flow), exact=True))
            await expect(card).to_contain_text(f"{flow}:")
            await expect(card).to_contain_text("Recovery point now")
        await page.page.get_by_role("link", name=str(fleet.flows[0]), exact=True).first.click()
        await page.settle()
        await page.sees("Lag and throughput")


async def test_change_of_a_row_is_seen_in_two_browsers_without_a_reload(
    chromium: Chromium, console: ConsoleProcess, fleet: FleetScene
) -> None:
    flow, topic = fleet.flows[1], fleet.topics[2]
    halted = PartitionProgress(
        topic=topic,
        partition=7,
        phase="halted",
        case="records-gone",
        cause=ReasonCode.REPORTED.to_reason(text="the records 5 to 8 are gone from the source"),
        upstream=RECORDS - 1,
        downstream=RECORDS - 1,
        source_end=RECORDS,
        slot=0,
    )
    async with chromium.open(console.address) as one, chromium.open(console.address, scheme="dark") as other:
        pages = [ConsolePage(one), ConsolePage(other)]
        for page in pages:
            await page.show("overview")
        with fleet.held_back(flow, topic, 7):
            fleet.write({flow: [replace(halted, at_ms=now_ms())]})
            for page in pages:
                await page.sees(f"partition {topic}-7", within_s=15)
                await page.sees("the records 5 to 8 are gone from the source")
        assert [request for request in one.requested if request.endswith("/api/v1/flows")] != []


async def test_names_and_values_of_hostile_writers_are_shown_and_not_carried_out(
    chromium: Chromium, console: ConsoleProcess, fleet: FleetScene
) -> None:
    flow, target = fleet.flows[0], fleet.b.bootstrap
    group = GroupStatus(group=HOSTILE, phase="waiting", reason=HOSTILE_SCRIPT, at_ms=now_ms())
    topic = MirroredTopic(
        source_topic=HOSTILE,
        target_topic=HOSTILE_LINK,
        phase="failed",
        cause=ReasonCode.REPORTED.to_reason(text=HOSTILE_SCRIPT),
        at_ms=now_ms(),
    )
    fleet.write({flow: [group, topic]})
    event = Event(
        kind="TopicCreated", service=HOSTILE, flow=str(flow), subject=HOSTILE, detail={"target": HOSTILE_SCRIPT}
    )
    produce(target, events_topic(flow), [Record(*replace(event, at_ms=now_ms()).encode())])
    create_topic(target, quarantine_topic(flow))
    headers = ((HOSTILE, HOSTILE_SCRIPT.encode()), ("__lockstep_reason", HOSTILE.encode()))
    produce(target, quarantine_topic(flow), [Record(HOSTILE.encode(), HOSTILE_SCRIPT.encode(), headers)])
    async with chromium.open(console.address) as watched:
        page = ConsolePage(watched)
        for screen in ("overview", "flow", "topics", "groups", "events"):
            await page.show(screen, str(flow))
            if screen in ("topics", "groups", "events"):
                await page.sees(HOSTILE)
        await watched.go(f"/#/flows/{flow.source}-%3E{flow.target}/records?topic=quarantine&from=beginning")
        await page.settle()
        for summary in await page.page.locator("summary").all():
            await summary.click()
        assert await page.page.locator("main img, main script, main iframe").count() == 0
        for link in await page.page.locator("a[href]").all():
            assert not (await link.get_attribute("href") or "").lower().startswith("javascript:")


async def test_decision_that_was_not_finished_is_offered_on_top(
    chromium: Chromium, console: ConsoleProcess, fleet: FleetScene
) -> None:
    flow, other = fleet.flows
    row = DesiredState(scope=str(SOURCE), phase="stopped", command=step_id("d1", stop_step("running")))
    async with chromium.open(console.address) as watched:
        page = ConsolePage(watched)
        await page.show("flow", str(other))
        fleet.write({flow: [replace(row, at_ms=now_ms() - UNDER_WAY_MS)]})
        try:
            waiting = page.page.get_by_role("link", name=re.compile("Overview.*1.*decision waits"))
            await expect(waiting).to_be_visible(timeout=20_000)
            await waiting.click()
            card = page.page.locator("li.decision").first
            await expect(card).to_contain_text("is not finished")
            await expect(card).to_contain_text(f"nothing of {flow} is copied")
            await expect(card.get_by_role("button")).to_have_text("Resume")
            await expect(card).to_contain_text(re.compile(r"for \d+ s"))
        finally:
            fleet.write({flow: [replace(row, phase="running", command="", at_ms=now_ms())]})
        await expect(page.page.locator("li.decision")).to_have_count(0, timeout=20_000)


async def test_alert_is_explained_without_the_internet(
    chromium: Chromium, console: ConsoleProcess, fleet: FleetScene
) -> None:
    async with chromium.open(console.address) as watched:
        page = ConsolePage(watched)
        await page.show("overview")
        await page.page.get_by_role("link", name="Alerts", exact=True).click()
        await page.sees("LockstepPartitionHalted")
        await page.page.get_by_label("Search codes and words").fill("records-not gone")
        await page.sees("Nothing is called so")
        await page.page.get_by_label("Search codes and words").fill("partition halted")
        await page.page.get_by_role("link", name="PartitionHalted", exact=True).click()
        await page.sees("Nothing is copied until an operator decides")
        await watched.go("/#/codes?code=LockstepGap")
        await page.sees("GapFound")
        await page.page.get_by_role("link", name="All alerts and codes").click()
        await page.sees("LockstepLagging")
        watched.allow("status of 404")
        await watched.go("/#/codes?code=partition-halt")
        await page.sees("Did you mean partition-halted")


async def test_console_without_a_token_is_read_only_and_says_why(chromium: Chromium, fleet: FleetScene) -> None:
    with ConsoleProcess(fleet.file) as console:
        console.wait_ready()
        async with chromium.open(console.address) as watched:
            page = ConsolePage(watched)
            await page.show("flow", str(fleet.flows[0]))
            await page.sees("Read-only")
            button = page.page.get_by_role("button", name="Pause", exact=True).first
            await expect(button).to_have_attribute("aria-disabled", "true")
            reason = await button.get_attribute("aria-describedby")
            await expect(page.page.locator(f'[id="{reason}"]')).to_contain_text("--token-file")
            await button.click(force=True)
            dialog = page.page.get_by_role("dialog", name="Read-only")
            await expect(dialog).to_contain_text("start the console with --token-file")
            await expect(dialog.get_by_label("Token")).to_have_count(0)
            await dialog.get_by_role("button", name="Close").click()
            refused = await page.page.evaluate(
                """async (path) => {
                  const headers = {"Content-Type": "application/json", "X-Lockstep-Request": "1"};
                  const answer = await fetch(path, {method: "POST", headers, body: '{"verb": "pause"}'});
                  return [answer.status, (await answer.json()).error.sentence];
                }""",
                f"api/v1/flows/{fleet.flows[0]}/commands".replace(">", "%3E"),
            )
            assert refused[0] in (401, 403), refused
            assert refused[1].endswith(".")
            watched.allow(r"status of 40[13]")


async def test_wrong_token_is_refused_and_the_right_one_lets_act(
    chromium: Chromium, console: ConsoleProcess, fleet: FleetScene
) -> None:
    flow = str(fleet.flows[1])
    async with chromium.open(console.address, allowed=[r"status of 40[13]"]) as watched:
        page = ConsolePage(watched)
        await page.show("flow", flow)
        await page.sign_in("wrong")
        dialog = page.page.get_by_role("dialog", name="Sign in")
        await expect(dialog.get_by_role("alert")).to_contain_text("wrong one")
        await dialog.get_by_label("Token").fill(TOKEN)
        await dialog.get_by_role("button", name="Sign in").click()
        await expect(dialog).to_have_count(0)
        sent = await page.act("Refresh")
        # No service of the fleet runs, and the page says that none has answered.
        await expect(sent).to_contain_text("no answer")
        await sent.get_by_role("button", name="Close").click()
        await expect(page.page.get_by_role("region", name="Commands of this page")).to_contain_text("Refresh")
        kept = await page.page.evaluate("() => [document.cookie, Object.keys(localStorage).length]")
        assert kept == ["", 0], "the token is in this tab alone"


async def test_switch_may_do_without_its_source_before_and_while_it_is_under_way(
    chromium: Chromium, console: ConsoleProcess, fleet: FleetScene
) -> None:
    flow = fleet.flows[1]
    row = Switch(id="s1", verb="switchover", phase="running", operator="o", by="alice")
    async with chromium.open(console.address) as watched:
        page = ConsolePage(watched)
        await page.show("switch", str(flow))
        await page.sign_in(TOKEN)
        await page.page.get_by_text("More options").click()
        box = page.page.get_by_role("checkbox", name=f"source-gone {Allowance.SOURCE_GONE.meaning}")
        await box.check()
        await page.page.get_by_role("radio", name=re.compile("^Fail over")).check()
        await expect(page.page.get_by_role("checkbox", name=re.compile("^stale-groups"))).to_be_visible()
        await expect(box).to_have_count(0)
        await page.page.get_by_role("radio", name=re.compile("^Switch over")).check()
        await expect(box).not_to_be_checked()
        fleet.write({flow: [replace(row, began_ms=now_ms(), at_ms=now_ms())]})
        try:
            await page.page.get_by_text("If a step fails again and again").click(timeout=20_000)
            await box.check()
            await page.page.get_by_role("button", name="Take it back").click()
            dialog = page.page.get_by_role("dialog", name="Take it back")
            await expect(dialog).to_contain_text("in spite of: source-gone")
        finally:
            produce(fleet.b.bootstrap, state_topic(flow), [Record(key=SWITCH_KEY.encode(), value=None, partition=0)])


async def test_keyboard_alone_reaches_a_flow_its_screens_and_an_action(
    chromium: Chromium, console: ConsoleProcess, fleet: FleetScene
) -> None:
    flow = str(fleet.flows[0])
    async with chromium.open(console.address) as watched:
        page = ConsolePage(watched)
        await page.show("overview")
        await page.sign_in(TOKEN)
        await expect(page.page.get_by_role("dialog")).to_have_count(0)
        await page.tab_to(flow)
        await page.page.keyboard.press("Enter")
        await page.settle()
        await page.tab_to("Groups")
        outline = await page.page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", "what has the focus is seen to have it"
        await page.page.keyboard.press("Enter")
        await page.settle()
        await page.tab_to("Sync groups")
        await page.page.keyboard.press("Enter")
        dialog = page.page.get_by_role("dialog", name="Sync groups")
        await expect(dialog).to_be_visible()
        assert "I have read" in await page.focused()
        await page.page.keyboard.press("Space")
        await expect(dialog.get_by_role("button", name="Sync groups")).to_be_enabled()
        await page.tab_to("Sync groups", most=3)
        await page.page.keyboard.press("Enter")
        await expect(dialog).to_contain_text("no answer")
        await page.page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)


async def faults_of_screens(
    watched: WatchedPage, flow: str, screens: Sequence[str], window: Screen
) -> AsyncIterator[str]:
    """Yield what axe-core finds in each screen, and that it is wider than the window."""
    page = ConsolePage(watched)
    for shown in screens:
        await page.show(shown, flow)
        for fault in await watched.accessibility_faults():
            yield f"{shown}: {fault}"
        if await watched.scrolls_sideways():
            yield f"{shown}: the page scrolls sideways at {window.width} px"


async def test_screen_reader_and_phone_find_nothing_serious(
    chromium: Chromium, console: ConsoleProcess, fleet: FleetScene
) -> None:
    async with chromium.open(console.address, screen=PHONE, bypass_csp=True) as watched:
        flow = str(fleet.flows[0])
        faults = [fault async for fault in faults_of_screens(watched, flow, ("overview", "flow", "groups"), PHONE)]
    assert not faults, "\n".join(faults)


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("window", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_nothing_serious_is_found_in_any_screen(
    chromium: Chromium, console: ConsoleProcess, fleet: FleetScene, scheme: Scheme, window: Screen
) -> None:
    async with chromium.open(console.address, scheme=scheme, screen=window, bypass_csp=True) as watched:
        flow = str(fleet.flows[0])
        faults = [fault async for fault in faults_of_screens(watched, flow, SCREENS, window)]
    assert not faults, "\n".join(faults)


async def test_addresses_that_lead_nowhere_get_a_sentence(
    chromium: Chromium, console: ConsoleProcess, fleet: FleetScene
) -> None:
    async with chromium.open(console.address, allowed=[r"status of 404"]) as watched:
        page = ConsolePage(watched)
        await page.show("flow", "X->Y")
        await page.sees(re.compile(r"X->Y"))
        await page.sees(re.compile(r"no flow|follows no|not a flow", re.IGNORECASE))
        await page.show("nowhere")
        await expect(page.page.locator("main")).to_contain_text(
            re.compile("no such|nothing here|not a screen", re.IGNORECASE)
        )
