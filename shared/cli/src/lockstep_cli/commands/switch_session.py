"""One run of a switch command: what it shows, asks and writes to files."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import RenderableType
from rich.text import Text

from lockstep_cli import STARTED_MS
from lockstep_cli.command_runner import ask_yes_or_no
from lockstep_cli.rendering.findings import print_refusals
from lockstep_cli.rendering.progress_display import ProgressDisplay
from lockstep_cli.rendering.result import document, print_document, print_parts
from lockstep_cli.rendering.switch import (
    evidence_lines,
    fact_line,
    id_hint,
    next_steps,
    plan_parts,
    report_line,
    step_line,
)
from lockstep_config import FlowSettings
from lockstep_ops.exit_codes import CannotUse, Exit
from lockstep_ops.switch.evidence import Evidence
from lockstep_ops.switch.refusals import Refusal, format_refusal, refusals_as_json
from lockstep_ops.switch.switch_clusters import StepFailed
from lockstep_ops.switch.switch_log import TakenOver
from lockstep_ops.switch.switch_options import SwitchOptions
from lockstep_ops.switch.switch_run import SwitchRun
from lockstep_ops.switch.switch_steps import UNDER_WAY, Step, began_at
from lockstep_ops.switch.switch_under_way import SwitchRefused, switch_to_show
from lockstep_runtime.util.clock import now_ms
from lockstep_state.rows.state_rows import Switch

if TYPE_CHECKING:
    from lockstep_cli.commands.switch import SwitchArguments


class SwitchSession:
    """One run of a switch command for the flow by which the applications move.

    Args:
        file: The configuration file.
        settings: The flow.
        opposite: The flow in the other direction, if the file has one.
        arguments: The options on the command line.
        options: The options of the switch.
    """

    def __init__(
        self,
        file: Path,
        settings: FlowSettings,
        opposite: FlowSettings | None,
        arguments: "SwitchArguments",
        options: SwitchOptions,
    ) -> None:
        self._file = file
        self._settings = settings
        self._arguments = arguments
        self._options = options
        self._run = SwitchRun(settings, opposite, options, on_step=self._on_step)
        self._log = self._run.log
        self._progress = self._run.progress
        self._display = ProgressDisplay(lambda: self._progress)

    async def run(self) -> int:
        """Do what the command line asks for, and return the exit code.

        Raises:
            CannotUse: The command line asks for something impossible.
            ClusterError: A cluster does not answer, or refuses.
            NewerVersion: A row is of a newer release.
        """
        async with self._run.following():
            try:
                with self._display:
                    return await self._obey()
            except SwitchRefused as refused:
                return self._refuse(refused.reasons)
            except (StepFailed, TakenOver) as exc:
                return await self._fail(str(exc))

    async def _obey(self) -> int:
        arguments, options = self._arguments, self._options
        if arguments.status:
            return await self._show_last()
        if arguments.continue_:
            return await self._continue()
        if arguments.abort:
            return await self._end(await self._run.take_back(await self._run.claim_to_abort()))
        plan = await self._run.plan()
        self._print(*plan_parts(plan, str(self._settings.flow)))
        if plan.refusals:
            return self._refuse(plan.refusals, plan.row)
        if arguments.dry_run:
            self._body(refusals_as_json(self._settings.flow, options.verb, (), plan.row))
            return Exit.FINE
        asks = not (arguments.yes or arguments.drill)
        self._display.hide()
        if asks and not ask_yes_or_no(f"Do this {options.verb} of {self._settings.flow}?"):
            raise CannotUse("nothing was done")
        waited = await self._wait_until(arguments.scheduled_ms)
        if asks or waited:  # much may have changed meanwhile, and nothing was read while the question was open
            self._display.show()
            await self._log.catch_up_now()
            plan = await self._run.plan()
            if plan.refusals:
                raise SwitchRefused(plan.refusals)
        if plan.report is not None:
            self._print(report_line(plan.report))
        row = plan.row if asks or waited else began_at(plan.row, STARTED_MS)
        self._print(Text(id_hint(row)))
        return await self._carry_out(await self._run.begin(plan, row))

    async def _continue(self) -> int:
        row = await self._run.claim()
        return await self._end(row) if row.phase == "done" else await self._carry_out(row)

    async def _carry_out(self, row: Switch) -> int:
        for step, state, *_ in row.steps:
            if state == "done":
                self._print(step_line(row, Step(step)))
        self._display.show()
        return await self._end(await self._run.carry_out(row))

    async def _end(self, row: Switch) -> int:
        """Show the result of the switch, and write the evidence."""
        evidence = await self._run.evidence(row)
        self._print(*evidence_lines(evidence))
        self._write_evidence(evidence)
        self._print(Text(next_steps(row, self._settings.flow, str(self._file))))
        self._body(evidence.as_json())
        return Exit.FINE if evidence.late == 0 else Exit.TROUBLE

    async def _show_last(self) -> int:
        row = switch_to_show(self._log.switch, self._settings.flow, self._options)
        for step, state, *_ in row.steps:
            if state != "waiting":
                self._print(step_line(row, Step(step)))
        evidence = await self._run.evidence(row)
        self._print(*evidence_lines(evidence))
        self._body(evidence.as_json())
        return Exit.TROUBLE if row.phase in UNDER_WAY else Exit.FINE

    async def _wait_until(self, moment_ms: int) -> bool:
        """Wait until a moment, and return whether there was anything to wait for."""
        waited = False
        while (left_ms := moment_ms - now_ms()) > 0:
            waited = True
            self._progress.text = f"begins in {left_ms / 1000:,.0f} s"
            self._display.show()
            await asyncio.sleep(min(1.0, left_ms / 1000))
        return waited

    # -- what is shown -------------------------------------------------------------------------------------------------

    def _refuse(self, reasons: Sequence[Refusal], row: Switch | None = None) -> int:
        print_refusals(map(format_refusal, reasons))
        self._body(refusals_as_json(self._settings.flow, self._options.verb, reasons, row))
        return Exit.TROUBLE

    async def _fail(self, reason: str) -> int:
        """Print why the switch stopped in the middle, and how to go on. Return the exit code."""
        click.echo(reason, err=True)
        row = self._log.switch
        if row is not None:
            evidence = await self._run.evidence(row)
            if row.phase == "aborted" or row.operator == self._log.operator:
                self._write_evidence(evidence)
            if row.phase == "aborted":
                click.echo(f"The {row.verb} is aborted, and no client was moved.", err=True)
                for sentence in evidence.lasting:
                    click.echo(f"Not taken back: {sentence}", err=True)
            elif row.operator == self._log.operator:
                advice = "Go on with --continue, or take it back with --abort"
                if row.phase == "aborting":
                    advice = "Go on with --abort"
                click.echo(f"{advice}: {row.verb} of {self._settings.flow}, --id {row.id}", err=True)
            self._body(evidence.as_json())
        return Exit.TROUBLE

    def _on_step(self, step: Step) -> None:
        row = self._log.switch
        if row is not None:
            self._print(step_line(row, step))
            self._display.show()

    def _print(self, *parts: RenderableType) -> None:
        self._display.hide()
        # What a program reads goes to standard output alone.
        print_parts(parts, stderr=self._arguments.output != "text")

    def _body(self, body: object) -> None:
        print_document(body, self._arguments.output)

    def _write_evidence(self, evidence: Evidence) -> None:
        row, flow = evidence.row, self._settings.flow
        moment = datetime.fromtimestamp(row.began_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        stem = self._arguments.evidence or Path(f"{row.verb}-{flow.source}-{flow.target}-{moment}")
        for path, text in (
            (stem.with_name(f"{stem.name}.json"), document(evidence.as_json(), "json")),
            (stem.with_name(f"{stem.name}.md"), evidence.as_markdown()),
        ):
            try:
                path.write_text(text)
            except OSError as exc:
                click.echo(f"the evidence cannot be written to {path}: {exc.strerror}", err=True)
            else:
                self._print(fact_line("evidence", str(path)))
