import assert from "node:assert/strict";
import { test } from "node:test";

const STATIC = "../../../services/console/src/lockstep_console/static";
const { BOX, TAG_HEIGHT, drawFlows } = await import(`${STATIC}/lib/layout.js`);
const { linePath, trendOf, withTail, worstOf } = await import(`${STATIC}/lib/trend.js`);
const { flowTone, groupWord, readinessTone, toneOf } = await import(`${STATIC}/lib/tone.js`);
const { choiceAction, commandAction, scopeInWords, switchAction, underWayAction } = await import(`${STATIC}/lib/actions.js`);

const { linesOf, outcomeOf } = await outcomeModule();

const { resultOf, topicState } = await import(`${STATIC}/screens/verify.js`);

/** The module reads the document's events when it is loaded. */
async function outcomeModule() {
  globalThis.document = { addEventListener() {} };
  globalThis.window = { addEventListener() {} };
  return import(`${STATIC}/parts/outcome.js`);
}

const flow = (from, to) => ({ flow: `${from}->${to}`, source: from, target: to });

test("clusters do not lie on each other, and all are in the drawing", () => {
  const spokes = Array.from({ length: 40 }, (_, index) => flow("hub", `edge-${index}`));
  for (const flows of [[flow("A", "B")], [flow("A", "B"), flow("B", "A")], [flow("A", "B"), flow("B", "C"), flow("C", "A")], spokes]) {
    const { places, arrows, width, height } = drawFlows(flows);
    assert.equal(arrows.length, flows.length);
    for (const place of places) {
      assert.ok(place.x - BOX.width / 2 >= 0 && place.x + BOX.width / 2 <= width, `${place.name} of ${flows.length}`);
      assert.ok(place.y - BOX.height / 2 >= 0 && place.y + BOX.height / 2 <= height, `${place.name} of ${flows.length}`);
      for (const other of places) {
        const apart = Math.abs(place.x - other.x) >= BOX.width || Math.abs(place.y - other.y) >= BOX.height;
        assert.ok(place === other || apart, `${place.name} and ${other.name} of ${flows.length}`);
      }
    }
    for (const { middle } of arrows) assert.ok(middle.y >= TAG_HEIGHT / 2 && middle.y + TAG_HEIGHT / 2 <= height, "what stands on an arrow is whole");
    assert.equal(new Set(arrows.map((arrow) => arrow.path)).size, arrows.length);
  }
});

test("a trend grows, falls, is steady or unknown", () => {
  const series = (before, late) => [...Array(20).fill(before), ...Array(10).fill(late)];
  assert.equal(trendOf(series(1_000, 5_000), 10, 500), "grows");
  assert.equal(trendOf(series(5_000, 1_000), 10, 500), "falls");
  assert.equal(trendOf(series(100, 300), 10, 500), "steady");
  assert.equal(trendOf(series(null, 300), 10, 500), "unknown");
  assert.equal(trendOf([], 10, 500), "unknown");
});

test("what is unknown is a hole in a line, and no zero", () => {
  assert.equal(linePath([0, null, 10], 2, 12, 10), "M0.0 11.0h1M2.0 1.0h1");
  assert.equal(linePath([null, null], 2, 12, 10), "");
  assert.deepEqual(worstOf([null, 3, 1]), { value: 3, index: 1 });
  assert.equal(worstOf([null]), null);
});

test("a flow that was not read is unknown, and never fine", () => {
  assert.equal(flowTone(null).tone, "unknown");
  assert.equal(flowTone({ unknown: "B does not answer", fine: false }).tone, "unknown");
  assert.equal(flowTone({ fine: true }).word, "fine");
  assert.equal(flowTone({ fine: true, decisions: [{}] }).tone, "bad");
  assert.equal(flowTone({ fine: false, lag_unknown: 2 }).tone, "unknown");
  assert.equal(flowTone({ fine: false, not_copying: { silent: 1 }, groups_held: { refused: 1 } }).word, "not all is copied");
  assert.equal(flowTone({ fine: false, not_copying: {}, groups_held: { "in use on target": 1 } }).word, "not all groups move");
  assert.equal(readinessTone(null).tone, "unknown");
  assert.equal(readinessTone({ unknown: "away", switch_ready: false }).tone, "unknown");
  assert.equal(readinessTone({ switch_ready: true }).tone, "good");
  assert.equal(toneOf("a word of a later release"), "plain");
});

test("a group has the word of its least ready partition", () => {
  const group = { group: "g", exact: 0, behind: 0, waiting: 0, held: "", trouble: "" };
  assert.equal(groupWord({ ...group, exact: 2 }), "exact");
  assert.equal(groupWord({ ...group, exact: 2, behind: 1 }), "behind");
  assert.equal(groupWord({ ...group, exact: 2, waiting: 1 }), "waiting");
  assert.equal(groupWord(group), "waiting");
  assert.equal(groupWord({ ...group, exact: 2, held: "in-use" }), "in use on target");
  assert.equal(groupWord({ ...group, trouble: "no right" }), "failing");
  assert.equal(groupWord({ ...group, readiness: "exact", waiting: 1 }), "exact");
});

test("a scope is said in words", () => {
  assert.equal(scopeInWords("flow", "A->B"), "the whole flow A->B");
  assert.equal(scopeInWords("", "A->B"), "the whole flow A->B");
  assert.equal(scopeInWords("partition:or:ders-0", "A->B"), "the partition or:ders-0 of A->B");
  assert.equal(scopeInWords("later:x", "A->B"), "later:x of A->B");
});

test("an action has its scope in words and the request of the API", () => {
  for (const verb of ["pause", "resume", "stop", "restart", "refresh", "sync-groups"]) {
    const action = commandAction("A->B", verb, "topic:orders");
    assert.equal(action.scope, "the topic orders of A->B");
    assert.equal(action.does, undefined, "the console says it");
    assert.deepEqual(action.body, { verb, subject: "topic:orders", arguments: {} });
  }
});

test("a choice says what the console says of it, and asks for an offset that nobody knows", () => {
  const choice = { verb: "skip", label: "Skip", does: "it goes on", loses: "4 records", subject: "partition:o-0", arguments: { offset: 1 } };
  const action = choiceAction({ flow: "A->B" }, choice);
  assert.deepEqual(action.body, { verb: "skip", subject: "partition:o-0", arguments: { offset: 1 } });
  assert.deepEqual([action.does, action.loses, action.isGrave, action.needsOffset], ["it goes on", "4 records", true, false]);
  assert.equal(choiceAction({ flow: "A->B" }, { ...choice, loses: "Nothing is lost." }).isGrave, false);
  assert.equal(choiceAction({ flow: "A->B" }, { ...choice, verb: "restart-from", arguments: {} }).needsOffset, true);
});

test("a failover asks for the name of the flow, and its drill does not", () => {
  assert.equal(switchAction("A->B", "failover", { drill: false }, {}).confirm, "type");
  assert.equal(switchAction("A->B", "failover", { drill: true }, {}).confirm, "check");
  assert.equal(switchAction("A->B", "switchover", { drill: false }, {}).confirm, "check");
  assert.deepEqual(switchAction("A->B", "switchover", { drill: true }, {}).body, { verb: "switchover", drill: true });
});

test("an outcome has the word of its phase, its sentence, and a line for each answer that the sentence lacks", () => {
  const reply = {
    phase: "running",
    flow: "A->B",
    sentence: "checkpoint: no answer to refresh. Look at its log.",
    steps: [{ verb: "refresh", lines: ["topic-sync: refreshed", "checkpoint: no answer to refresh. Look at its log."] }],
  };
  assert.equal(outcomeOf(null).word, "under way");
  assert.deepEqual(linesOf(reply), [], "a service that has not answered yet may do so");
  assert.equal(outcomeOf({ ...reply, phase: "unanswered" }).word, "no answer");
  assert.deepEqual(linesOf({ ...reply, phase: "unanswered" }), ["topic-sync: refreshed"]);
  const two = [...reply.steps, { verb: "resume", lines: ["topic-sync: resumed"] }];
  assert.equal(linesOf({ ...reply, phase: "done", steps: two }).at(-1), "resume: topic-sync: resumed");
  const shares = Array.from({ length: 8 }, () => ({ verb: "sync-groups", lines: ["checkpoint: groups synced"] }));
  assert.deepEqual(linesOf({ ...reply, phase: "done", sentence: "", steps: shares }), ["sync-groups: checkpoint: groups synced"]);
  assert.equal(outcomeOf({ ...reply, phase: "a later one" }).tone, "plain");
});

test("a topic is compared only while a request for it runs", () => {
  const topic = { topic: "orders", records: 9, behind: 3, differ: 0, missing: 0, extra: 0, beyond: 0, not_verified: 0 };
  const running = { phase: "running", topics: [] };
  assert.equal(topicState(topic, running), "running");
  assert.equal(topicState(topic, { phase: "ended", topics: [] }), "done", "what came since is not compared, and nothing runs");
  assert.equal(topicState(topic, { phase: "running", topics: ["bills"] }), "done");
  assert.equal(topicState(topic, null), "done", "it is compared all the time");
  assert.equal(topicState({ ...topic, records: 0 }, running), "waiting");
  assert.equal(topicState({ ...topic, records: 0 }, null), "not compared");
  assert.equal(topicState({ ...topic, records: 0, behind: 0 }, null), "nothing to compare");
  assert.equal(topicState({ ...topic, differ: 1 }, running), "differs");
  assert.equal(topicState({ ...topic, not_verified: 1 }, null), "not all compared");
});

test("a comparison is equal as far as it went, and never because nothing was compared", () => {
  const topic = { topic: "orders", records: 9, behind: 3, differ: 0, missing: 0, extra: 0, beyond: 0, not_verified: 0 };
  const body = { equal: false, topics: [topic], not_verified: [], waiting: {}, request: { phase: "ended", topics: [] } };
  assert.deepEqual(resultOf(body), { tone: "good", word: "equal, as far as it is compared" });
  assert.equal(resultOf({ ...body, equal: true }).word, "equal");
  assert.equal(resultOf({ ...body, waiting: { "orders-1": "it is not mirrored" } }).tone, "unknown");
  assert.equal(resultOf({ ...body, request: { phase: "running", topics: [] } }).tone, "unknown");
  assert.equal(resultOf({ ...body, topics: [{ ...topic, records: 0 }] }).word, "not compared");
  assert.equal(resultOf({ ...body, topics: [topic, { ...topic, records: 0 }] }).tone, "unknown");
  assert.equal(resultOf({ ...body, topics: [{ ...topic, extra: 2 }] }).word, "2 differences");
});

test("a history goes on with what is new, and keeps its length", () => {
  const column = (values) => ({ lag_ms: values, lag_records: values, records_per_s: values });
  const line = (topic, begins, values) => ({ topic, partition: 0, begins_ms: begins, step_s: 60, lag_ms: values });
  const lag = { step_s: 10, begins_ms: 100_000, ...column([1, 2, 3, null]), worst: [line("a", 0, [5]), line("b", 0, [9])] };
  const tail = (begins, values, worst = []) => ({ step_s: 10, begins_ms: begins, ...column(values), worst });
  const later = withTail(lag, tail(120_000, [3, 4, 5], [line("a", 7, [8]), line("b", 7, [2])]));
  assert.equal(later.begins_ms, 110_000);
  assert.deepEqual(later.lag_ms, [2, 3, 4, 5]);
  assert.deepEqual(later.worst.map(({ topic, begins_ms: begins }) => [topic, begins]), [["b", 0], ["a", 7]]);
  assert.deepEqual(withTail(lag, tail(130_000, [null])).lag_ms, [1, 2, 3, null], "what is not known replaces nothing");
  assert.deepEqual(withTail(lag, tail(160_000, [7])).lag_ms, [null, null, null, 7], "a hole stays a hole");
  assert.deepEqual(withTail(lag, tail(500_000, [7, 8])).lag_ms, [null, null, 7, 8]);
  assert.deepEqual(withTail(lag, tail(90_000, [6, 7])).lag_ms, [7, 2, 3, null]);
});

test("a switch under way is asked for what it is to do without, and what that loses", () => {
  const row = { switch: "x 1", verb: "switchover" };
  const plain = underWayAction("A->B", row, "continue", []);
  assert.deepEqual([plain.path, plain.body], ["/switches/x%201/continue", {}]);
  assert.match(plain.loses, /Nothing is lost/);
  for (const what of ["continue", "abort"]) {
    const action = underWayAction("A->B", row, what, ["source-gone"]);
    assert.deepEqual(action.body, { allow: ["source-gone"] });
    assert.match(action.does, /in spite of: source-gone/);
  }
  assert.match(underWayAction("A->B", row, "continue", ["source-gone"]).loses, /nobody knows/);
});
