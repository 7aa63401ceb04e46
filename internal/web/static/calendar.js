// The calendar: what runs until when, what is claimed for whom, and when nodes are taken
// out for maintenance, as bars over time.

import { get, Failure } from "./api.js";
import { gantt, keys } from "./chart.js";
import { card, choices, code, empty, h, jobLink, patch, table } from "./dom.js";
import { amount, colourOf, count, devices, instant, ofUs, rough, time } from "./words.js";
import { problem } from "./problem.js";

export const title = "Calendar";
export const about = "Runs, claims of jobs that wait, and maintenance windows.";

const askEvery = 5; // seconds
const mostLanes = 120;
const spans = [[3600, "1 hour"], [6 * 3600, "6 hours"], [86400, "1 day"], [7 * 86400, "1 week"]];

export function open(root, ctx) {
  const known = { calendar: null, failure: null };
  const draw = () => {
    if (known.failure) patch(root, problem(known.failure, "a calendar"));
    else if (!known.calendar) patch(root, h("p", { class: "waiting" }, "Asking the server."));
    else patch(root, page(known.calendar, ctx));
  };
  ctx.onChange(draw);
  ctx.every(askEvery, async () => {
    try {
      known.calendar = await get("calendar", ctx.signal);
      known.failure = null;
    } catch (error) {
      if (!(error instanceof Failure)) return;
      known.failure = error;
    }
    if (!ctx.signal.aborted) draw();
  });
}

function page(calendar, ctx) {
  if (calendar.entries.length === 0) {
    return card(null, null, empty("The calendar is empty", "Nothing runs, nothing is reserved, and no maintenance is planned. A run appears as soon as a job starts:", code("muster submit --workers 2 -- python3 train.py")));
  }
  const by = ctx.params.get("by") === "job" ? "job" : "node";
  const now = calendar.now_us / 1e6;
  const chosen = spans.find(([sec]) => String(sec) === ctx.params.get("span"))?.[0];
  const [from, to] = stretch(calendar.entries, now, chosen);
  const lanes = by === "job" ? byJob(calendar.entries, from, to) : byNode(calendar.entries, from, to, ctx.snapshot());
  const width = ctx.width() - 42;
  const address = (b, sec) => "#/calendar?by=" + b + (sec ? "&span=" + sec : "");
  return [h("section", { class: "card" },
    h("div", { class: "bar" }, h("h2", null, time(new Date(from * 1000)) + " to " + time(new Date(to * 1000), new Date(from * 1000))),
      choices("A line for each", [[address("node", chosen), "By node", by === "node"], [address("job", chosen), "By job", by === "job"]]),
      choices("How far ahead", [[address(by), "All", !chosen], ...spans.map(([sec, text]) => [address(by, sec), text, sec === chosen])])),
    gantt({ width, words: "Calendar, a line for each " + by, lanes: lanes.slice(0, mostLanes), from, to, now, labelWidth: ctx.width() < 600 ? 92 : 140 }),
    lanes.length > mostLanes && h("p", { class: "hint" }, `${count(lanes.length - mostLanes, "more line", "more lines")} below: the table has all of them.`),
    keys([["runbar c0", "runs, in the colour of its queue"], ["claimbar c0", "claimed for a waiting job"], ["windowbar", "maintenance"]]),
    h("p", { class: "hint" }, "An arrow at the end of a bar: nobody knows when it ends.")), list(calendar.entries, now)];
}

// stretch is what is shown: a little of the past, and the future that is known or asked for.
function stretch(entries, now, ahead) {
  const ends = entries.map((e) => e.to_us / 1e6).filter((t) => t > now);
  const to = ahead ? now + ahead : Math.max(now + 600, ...ends) + 60;
  const began = Math.min(now, ...entries.map((e) => e.from_us / 1e6));
  return [Math.max(began, now - (to - now) / 2), to];
}

function barOf(e, from, to, text) {
  const start = e.from_us / 1e6, end = e.to_us < 0 ? to : e.to_us / 1e6;
  if (start >= to || end <= from) return null;
  const until = e.to_us < 0 ? "until nobody knows when" : "until " + instant(ofUs(e.to_us));
  const who = e.kind === "window" ? "Maintenance" : e.kind === "claim" ? `Claimed for ${e.job}` : `${e.job} runs`;
  return { from: Math.max(start, from), to: end, cut: start < from, open: e.to_us < 0, text: text || e.words || "maintenance", key: [e.kind, e.job, e.from_us].join(" "),
    class: e.kind + " " + (e.kind === "window" ? "" : colourOf(e.queue)), href: e.job ? "#/job/" + encodeURIComponent(e.job) : "#/calendar",
    tip: [`${who}${e.queue ? " (queue " + e.queue + ")" : ""}${e.devices ? ", " + devices(e.devices) : ""}`, `from ${instant(ofUs(e.from_us))} ${until}`, e.words].filter(Boolean).join("\n") };
}

function byNode(entries, from, to, snapshot) {
  const lanes = new Map((snapshot?.nodes ?? []).map((n) => [n.name, []]));
  for (const e of entries) {
    for (const node of e.nodes?.length ? e.nodes : ["any node"]) {
      const b = barOf(e, from, to, e.job);
      if (b) lanes.set(node, [...(lanes.get(node) ?? []), b]);
    }
  }
  return [...lanes].map(([name, bars]) => ({ name, bars, href: name === "any node" ? null : "#/?node=" + encodeURIComponent(name) }));
}

function byJob(entries, from, to) {
  const lanes = new Map();
  for (const e of entries) {
    const b = barOf(e, from, to, e.nodes?.length ? (e.nodes.length > 2 ? count(e.nodes.length, "node", "nodes") : e.nodes.join(", ")) : e.words);
    const name = e.job || "maintenance";
    if (b) lanes.set(name, [...(lanes.get(name) ?? []), b]);
  }
  return [...lanes].map(([name, bars]) => ({ name, bars, href: name === "maintenance" ? null : "#/job/" + encodeURIComponent(name) }));
}

function list(entries, now) {
  const sorted = [...entries].sort((a, b) => a.from_us - b.from_us);
  return h("section", { class: "card" }, h("details", null, h("summary", null, `As a table, ${count(entries.length, "entry", "entries")}`), table("Calendar", [
    { name: "What", left: true, cell: (e) => [e.kind === "window" ? "maintenance" : e.kind, e.job && [" ", jobLink(e.job)]] },
    { name: "Queue", left: true, cell: (e) => e.queue || "–" },
    { name: "Devices", cell: (e) => (e.devices ? amount(e.devices) : "–") },
    { name: "From", cell: (e) => instant(ofUs(e.from_us)) },
    { name: "To", cell: (e) => (e.to_us < 0 ? "unknown" : instant(ofUs(e.to_us))) },
    { name: "Left", cell: (e) => (e.to_us < 0 ? "–" : rough(Math.max(0, e.to_us / 1e6 - Math.max(now, e.from_us / 1e6)))) },
    { name: "Nodes", left: true, cell: (e) => (e.nodes ?? []).slice(0, 4).join(", ") + ((e.nodes ?? []).length > 4 ? ` and ${e.nodes.length - 4} more` : "") },
    { name: "Words", left: true, wrap: true, cell: (e) => e.words || "–" },
  ], sorted, null, "cards")));
}
