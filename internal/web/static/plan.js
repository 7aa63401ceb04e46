// A job's pipeline plan: what is predicted of it above what its trainer measured, over
// the same time.

import { figure, keys, clip } from "./chart.js";
import { card, h, s, table } from "./dom.js";
import { amount, count, instant, ofUs, sentence, span, ticks, trim } from "./words.js";

const kinds = { F: ["c0", "forward"], G: ["c0", "forward, first half"], H: ["c0", "forward, second half"], R: ["c3", "forward again"], B: ["c1", "backward"], I: ["c4", "backward, inputs"], W: ["c2", "backward, weights"] };
const rowHeight = 18, labelWidth = 64, headHeight = 22, axisHeight = 24;

// planCard shows the plan as the API tells it; undefined is a server that tells of none.
export function planCard(plan, width) {
  if (plan === undefined) return card("Plan", null, h("p", { class: "muted" }, "This server does not tell of plans."));
  if (plan === null) return null;
  const menu = plan.menu?.length > 0 && offers(plan.menu), ways = (plan.schedule || plan.reactions?.length > 0) && reactions(plan);
  if (!plan.schedule) return card("Plan", null, h("p", { class: "muted" }, sentence(plan.words || "it has no plan") + "."), ways, menu);
  const facts = [["Plan", plan.schedule], ["Predicted step", short(plan.iteration_s * 1e6)], plan.passes_s && ["Its passes", short(plan.passes_s * 1e6)], plan.null_iteration_s && ["With equal layers and GPipe", short(plan.null_iteration_s * 1e6)],
    [plan.passes_s ? "Measured passes" : "Measured step", plan.measured_s ? short(plan.measured_s * 1e6) : plan.measured ? "its timeline is cut" : "not measured yet"], plan.measured && ["Step measured last", plan.measured.step]].filter(Boolean);
  return h("section", { class: "card plan" }, h("h2", null, "Plan"),
    h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", { "data-key": name }, h("dt", null, name), h("dd", null, value)))),
    pictures(plan, Math.max(420, width)), ways, menu);
}

const causes = { drift: "its stages took other times than its plan says", lost: "it lost a device" };

// reactions lists the ways in which the run could go on when something broke last, the cheapest first,
// with what each would cost.
function reactions(plan) {
  const head = h("h3", null, "Reactions to the last fault");
  if (!plan.reactions?.length) return [head, h("p", { class: "hint" }, "Nothing has broken: after a fault, the ways to go on stand here with their prices.")];
  return [head, h("p", { class: "hint" }, `${instant(ofUs(plan.reacted_us))}: ${causes[plan.cause] ?? plan.cause}. ${plan.chosen ? "It went on by: " + plan.chosen : "It went back to its queue"}. The price is what all its devices lose, in device-seconds, until it is as before.`),
    table("Reactions to the last fault", [
      { name: "Way", left: true, wrap: true, cell: (x) => x.way === plan.chosen ? h("b", null, x.way + " (chosen)") : x.way },
      ...[["Pause", "pause_s"], ["Done again", "redo_s"], ["Step then", "step_s"]].map(([name, key]) => ({ name, cell: (x) => !x.why ? short(x[key] * 1e6) : "–" })),
      { name: "Price", cell: (x) => !x.why ? amount(Math.round(x.price_device_s)) : "–" }, { name: "Why not", left: true, wrap: true, cell: (x) => x.why || "–" },
    ], plan.reactions, (x) => ({ class: x.way === plan.chosen ? "chosen" : null }), "cards")];
}

// pictures draws both timelines over the same axis, and the memory below them.
function pictures(plan, width) {
  const predicted = plan.predicted ?? [], measured = plan.measured?.timeline ?? [];
  if (predicted.length === 0) return h("p", { class: "hint" }, sentence(plan.words || "what each rank does is not told of this plan") + ".");
  const all = [...predicted, ...measured].flat();
  const longest = Math.max(1, ...all.map((x) => x.end_us)), seen = new Set(all.map((x) => kindOf(x.op)));
  const one = (words, lines) => h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": words }, timeline(words, lines, longest, width));
  return [one("As predicted", predicted), measured.length > 0 ? one("As measured", measured) : h("p", { class: "hint" }, "Not measured yet."),
    keys(Object.entries(kinds).filter(([kind]) => seen.has(kind)).map(([kind, [colour, words]]) => [colour, `${kind}: ${words}`])),
    plan.kept_mib?.some((x) => x > 0) && memory(plan.kept_mib)];
}

const kindOf = (op) => /[A-Z]/.exec(op)?.[0];

function timeline(words, lines, longest, width) {
  const bottom = headHeight + lines.length * rowHeight, px = (us) => labelWidth + (us / longest) * (width - labelWidth - 12);
  const parts = [s("text", { class: "label", x: 0, y: 14 }, words), ticks(0, longest, (width - labelWidth) / 90).map((us) => [
    s("line", { class: "rule", x1: px(us), x2: px(us), y1: headHeight, y2: bottom }), s("text", { class: "label mid", x: Math.min(px(us), width - 24), y: bottom + 15 }, short(us))])];
  lines.forEach((line, rank) => {
    const top = headHeight + rank * rowHeight;
    parts.push(s("text", { class: "label", x: 0, y: top + 13 }, "rank " + rank), line.map((x, i) => pass(x, i, rank, px, top)));
  });
  return figure(width, bottom + axisHeight, `${words}: ${count(lines.length, "rank", "ranks")}, ${short(Math.max(0, ...lines.flat().map((x) => x.end_us)))}`, parts);
}

function pass(x, i, rank, px, top) {
  const [colour, words] = kinds[kindOf(x.op)] ?? ["cx", "another pass"], left = px(x.start_us), wide = Math.max(0.5, px(x.end_us) - left), text = clip(x.op, wide - 2);
  return [s("rect", { class: "pass " + colour, x: left, y: top + 1, width: wide, height: rowHeight - 3, "data-key": rank + " " + i, "data-tip": `${x.op}, ${words}: ${short(x.start_us)} to ${short(x.end_us)} on rank ${rank}` }),
    text && s("text", { class: "inside mid", x: left + wide / 2, y: top + 13 }, text)];
}

function memory(peaks) {
  const most = Math.max(...peaks);
  return [h("h3", null, "Activations and old weights that a rank keeps at most, as predicted"),
    h("ul", { class: "bars" }, peaks.map((x, rank) => h("li", null, h("span", { class: "what" }, "rank " + rank), h("span", { class: "meter" }, h("i", { style: { width: (x / most) * 100 + "%" } })), h("span", { class: "n" }, amount(x) + " MiB"))))];
}

// offers lists a menu, the fastest plan of a kind of devices and size in each row.
function offers(menu) {
  const listed = table("The menu", [
    { name: "Plan", left: true, wrap: true, cell: (x) => [x.schedule, x.chosen && h("b", null, " (runs)")] }, { name: "Device", left: true, cell: (x) => x.model || "any" },
    { name: "Workers", cell: (x) => String(x.workers) }, { name: "Nodes", cell: (x) => String(x.nodes) }, { name: "Predicted step", cell: (x) => short(x.step_s * 1e6) },
  ], menu);
  return h("details", { open: menu.length <= 12 }, h("summary", null, count(menu.length, "plan", "plans") + " in its menu, by size and devices"), listed);
}

// short writes microseconds, of which a step may take few.
function short(us) {
  if (us < 1000) return trim(us, 0) + "us";
  if (us < 1e6) return trim(us / 1000, 2) + "ms";
  return us < 60e6 ? trim(us / 1e6, 2) + "s" : span(us / 1e6);
}
