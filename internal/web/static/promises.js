// Promises: what jobs were told of their start, and how it turned out, by queue.

import { get, Failure } from "./api.js";
import { card, empty, h, patch, table } from "./dom.js";
import { colourOf, count, percent } from "./words.js";
import { problem } from "./problem.js";

export const title = "Promises";
export const about = "How good the estimates were that jobs were given.";

const askEvery = 30; // seconds
const asPromised = 0.8; // a range is meant to hold four times of five
const tolerated = [0.72, 0.88];
const few = 30; // scored promises below which a rate says little

export function open(root, ctx) {
  ctx.every(askEvery, async () => {
    try {
      const { queues } = await get("promises", ctx.signal);
      patch(root, page(queues));
    } catch (error) {
      if (!ctx.signal.aborted && error instanceof Failure) patch(root, problem(error, "scores of its promises"));
    }
  });
}

function page(queues) {
  if (queues.length === 0) return card(null, null, empty("No promise has been made yet", "Each waiting job is told a range of when it starts. As jobs start, the ranges are scored here."));
  const all = queues.find((q) => q.queue === ""); // the first, of all queues together
  const called = (q) => q.queue || "all queues";
  return [
    h("section", { class: "card" }, h("p", { class: "sentence" }, all.scored === 0 ? "None of the promises has come due yet."
      : `Of ${count(all.scored, "start", "starts")} that came due, ${percent(all.coverage)} fell inside their range.`),
    h("p", { class: "hint" }, `A range is meant to hold ${percent(asPromised)} of the time: much less and it was too hopeful, much more and it was too wide to be of use. The band is ${percent(tolerated[0])} to ${percent(tolerated[1])}.`),
    h("ul", { class: "shares hits" }, queues.map((q) => h("li", { "data-key": q.queue }, h("span", { class: "what" }, h("i", { class: "dot " + colourOf(q.queue) }), h("b", null, called(q))),
      h("span", { class: "bullet " + colourOf(q.queue), tabindex: "0", role: "img", "aria-label": judged(q), "data-tip": judged(q) }, h("i", { class: "track", style: { left: "0", width: "100%" } }),
        h("i", { class: "band", style: { left: tolerated[0] * 100 + "%", width: (tolerated[1] - tolerated[0]) * 100 + "%" } }),
        q.scored > 0 && h("i", { class: "used", style: { left: "0", width: q.coverage * 100 + "%" } }), h("i", { class: "deserved", style: { left: asPromised * 100 + "%" } })),
      h("span", { class: "n" }, h("b", null, q.scored > 0 ? percent(q.coverage) : "–")), h("span", { class: "words" }, judged(q)))))),
    card("Figures", null, table("Promises by queue", [
      { name: "Queue", left: true, cell: called },
      { name: "Promises", unit: "made", cell: (q) => q.promises.toLocaleString("en") },
      { name: "Starts", unit: "came due", cell: (q) => q.scored.toLocaleString("en") },
      { name: "Inside the range", unit: "of starts", cell: (q) => percent(q.coverage) },
      { name: "Ends", unit: "came due", cell: (q) => q.scored_ends.toLocaleString("en") },
      { name: "Inside the range", unit: "of ends", cell: (q) => percent(q.end_coverage) },
      { name: "Median error", unit: "of the wait", cell: (q) => (q.scored > 0 ? percent(q.median_error) : "–") },
    ], queues, (q) => ({ "data-key": q.queue }))),
  ];
}

function judged(q) {
  if (q.scored === 0) return "none came due yet";
  const of = `of ${count(q.scored, "start", "starts")}`;
  if (q.scored < few) return `${of}, too few to judge`;
  if (q.coverage < tolerated[0]) return `${of}, too hopeful`;
  return q.coverage > tolerated[1] ? `${of}, too wide` : `${of}, as meant`;
}
