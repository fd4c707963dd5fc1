import assert from "node:assert/strict";
import { test } from "node:test";

const STATIC = "../../../services/console/src/lockstep_console/static";
const { EventParser, backoffMs } = await import(`${STATIC}/lib/sse.js`);
const { parseRoute, flowHref } = await import(`${STATIC}/lib/route.js`);

test("messages come whole, wherever a piece ends", () => {
  const text = 'event: hello\ndata: {"at_ms":1}\n\n: alive\n\nevent: status\r\ndata: a\r\ndata: b\r\n\r\n';
  for (let size = 1; size < text.length; size += 1) {
    const parser = new EventParser();
    const messages = [];
    for (let at = 0; at < text.length; at += size) messages.push(...parser.feed(text.slice(at, at + size)));
    assert.deepEqual(messages, [
      { event: "hello", data: '{"at_ms":1}' },
      { event: "status", data: "a\nb" },
    ], `pieces of ${size}`);
  }
});

test("attempts come later and later, up to a limit", () => {
  assert.deepEqual([0, 1, 2, 3, 4, 9].map((attempt) => backoffMs(attempt, 1)), [1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
  assert.equal(backoffMs(0, 0), 750);
});

test("the address of a screen is read as it was made", () => {
  const href = flowHref("A->B", "partitions", { filter: "or/ders?" });
  assert.deepEqual(parseRoute(href), { screen: "flow/partitions", flow: "A->B", query: { filter: "or/ders?" } });
  assert.deepEqual(parseRoute(""), { screen: "overview", flow: "", query: {} });
  assert.deepEqual(parseRoute("#/clusters"), { screen: "clusters", flow: "", query: {} });
  assert.equal(parseRoute("#/flows/%zz").flow, "%zz");
});
