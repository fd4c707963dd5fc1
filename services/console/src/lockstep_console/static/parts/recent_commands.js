// The last commands of a flow that this console knows, of every browser, with what came of them.

import { scopeInWords } from "../lib/actions.js";
import { flowPath, get } from "../lib/api.js";
import { asSentence, capitalized, visible } from "../lib/format.js";
import { html, useEffect } from "../lib/preact.js";
import { onChanges } from "../lib/store.js";
import { Age, Empty, Pending, Section, State, Text, useResource, useThrottled } from "./basics.js";
import { outcomeOf } from "./outcome.js";

/** Commands that are shown. */
const SHOWN = 10;

/** @param {{ flow: string }} props */
export function RecentCommands({ flow }) {
  const body = useResource(`${flow} commands`, (cancel) => get(flowPath(flow, "/commands"), {}, cancel));
  const refresh = useThrottled(body.reload, 1_000);
  useEffect(() => onChanges({ command: (data) => data.flow === flow && refresh(), hello: refresh }), [flow]);
  /** @type {Api.CommandReply[]} */
  const commands = body.value?.commands ?? [];
  return html`<${Section} title="Last commands">
    <${Pending} resource=${body} what="the last commands" />
    ${body.value && !commands.length && html`<${Empty}>This console was asked for nothing since it began. Events has what was asked before.<//>`}
    <ul class="plain lines">
      ${commands.slice(0, SHOWN).map((command) => html`<li key=${command.id}><${Line} command=${command} /></li>`)}
    </ul>
  <//>`;
}

/** @param {{ command: Api.CommandReply }} props */
function Line({ command }) {
  const { tone, word } = outcomeOf(command);
  return html`<${State} word=${word} tone=${tone} />${" "}
    <strong>${visible(capitalized(command.verb))}</strong>: <${Text} text=${scopeInWords(command.subject, command.flow)} />
    <span class="muted"> <${Age} ms=${command.at_ms} />${command.by && `, by ${visible(command.by)}`}</span>.${" "}
    <${Text} text=${asSentence(command.sentence)} />`;
}
