import assert from "node:assert/strict";
import { test } from "node:test";

const STATIC = "../../../services/console/src/lockstep_console/static";
const format = await import(`${STATIC}/lib/format.js`);

test("unknown is never a number", () => {
  for (const value of [null, undefined, Number.NaN]) {
    assert.equal(format.inNumber(value), "unknown");
    assert.equal(format.inTime(value), "unknown");
    assert.equal(format.inBytes(value), "unknown");
    assert.equal(format.inRate(value), "unknown");
    assert.equal(format.inMoment(value), "unknown");
    assert.equal(format.ago(value, 5), "unknown");
  }
  assert.equal(format.ago(0, 5), "unknown");
  assert.equal(format.inCount(null, "topic"), "topics unknown");
  assert.equal(format.inText(null), "unknown");
});

test("a duration is in its largest unit", () => {
  const texts = [0, 350, 2_400, 9_940, 9_960, 59_999, 60_000, 720_000, 3_600_000, 90_000_000].map(format.inTime);
  assert.deepEqual(texts, ["0 s", "350 ms", "2.4 s", "9.9 s", "10 s", "60 s", "1.0 min", "12 min", "1.0 h", "1.0 d"]);
  assert.equal(format.inTime(-5), "0 s");
});

test("numbers, sizes and rates have their units", () => {
  assert.equal(format.inNumber(12_345), "12,345");
  assert.equal(format.inCount(1, "topic"), "1 topic");
  assert.equal(format.inCount(2_000, "topic"), "2,000 topics");
  assert.deepEqual([0, 512, 1_536, 3 * 2 ** 30].map(format.inBytes), ["0 B", "512 B", "1.5 KiB", "3.0 GiB"]);
  assert.deepEqual([0, 0.44, 1_200].map(format.inRate), ["0/s", "0.4/s", "1,200/s"]);
});

test("an age is whole, and one in the future is now", () => {
  assert.equal(format.ago(1_000, 4_900), "3 s ago");
  assert.equal(format.ago(9_000, 4_900), "0 s ago");
  assert.equal(format.wholeTime(7_260_000), "2 h");
});

test("a name cannot hide what it is", () => {
  assert.equal(format.visible("a\u202eb\n\u200b"), "a\\u{202e}b\\u{a}\\u{200b}");
  assert.equal(format.visible("<img src=x>"), "<img src=x>");
  assert.equal(format.visible(undefined), "");
});

test("words of the API are read as words", () => {
  assert.equal(format.inWords("not-ready"), "not ready");
  assert.equal(format.inWords("TopicCreated"), "topic created");
  assert.equal(format.inWords("halted"), "halted");
  assert.equal(format.asSentence("it waits"), "it waits.");
  assert.equal(format.asSentence("it waits."), "it waits.");
  assert.equal(format.asSentence(""), "");
});
