// Shares: what every queue deserves, has, borrows and lends, now and over time.

import { get, Failure } from "./api.js";
import { keys, stack } from "./chart.js";
import { card, code, empty, h, patch, table } from "./dom.js";
import { amount, colourOf, count, devices, instant, ofUs, rough, time } from "./words.js";
import { problem } from "./problem.js";

export const title = "Shares";
export const about = "What each queue deserves, uses, borrows and lends.";

const askEvery = 5; // seconds

export function open(root, ctx) {
  const known = { shares: null, history: null, failure: null };
  const draw = () => {
    if (known.failure) patch(root, problem(known.failure, "shares"));
    else if (!known.shares) patch(root, h("p", { class: "waiting" }, "Asking the server."));
    else patch(root, page(known, ctx));
  };
  ctx.onChange(draw);
  ctx.every(askEvery, async () => {
    try {
      known.shares = await get("shares", ctx.signal);
      known.failure = null;
      known.history = await get("shares/history", ctx.signal).catch(() => known.history);
    } catch (error) {
      if (!(error instanceof Failure)) return;
      known.failure = error;
    }
    if (!ctx.signal.aborted) draw();
  });
}

// tree puts every queue under its parent, each with its depth and what it is called there.
function tree(queues) {
  const names = new Set(queues.map((q) => q.name));
  const out = [];
  const put = (q, depth) => {
    const called = q.parent && q.name.startsWith(q.parent + "/") ? q.name.slice(q.parent.length + 1) : q.name || "all queues";
    out.push({ ...q, depth, called });
    queues.filter((c) => c.parent === q.name && c.name !== q.name).forEach((c) => put(c, depth + 1));
  };
  queues.filter((q) => q.parent === q.name || !names.has(q.parent)).forEach((q) => put(q, 0));
  return out;
}

function page({ shares, history }, ctx) {
  const queues = tree(shares.queues);
  if (!queues.some((q) => q.name)) { // the root alone, or nothing
    return [card(null, null, empty("There are no queues", "Everybody shares the devices alike. Queues with guaranteed shares are described in a file of YAML:", code("queues:\n  - {name: research, guarantee: 16, weight: 2}\n  - {name: product, guarantee: 8, limit: 24}"))), overTime(queues, history, ctx)];
  }
  return [bars(queues), overTime(queues, history, ctx), figures(queues, shares)];
}

function bars(queues) {
  const most = Math.max(1, ...queues.map((q) => Math.max(q.used_devices, q.deserved_devices, q.guarantee_devices, q.used_devices + q.lent_devices, q.limit_devices < 0 ? 0 : q.limit_devices)));
  return card("Now", "Devices. The line is what a queue deserves at this moment, the notch its guarantee, the end of the track its limit.",
    h("ul", { class: "shares" }, queues.map((q) => h("li", { "data-key": q.name, style: { "--depth": q.depth } },
      h("span", { class: "what" }, h("i", { class: "dot " + colourOf(q.name) }), h("b", { "data-tip": q.name || null }, q.called)), bullet(q, most),
      h("span", { class: "n" }, h("b", null, amount(q.used_devices)), ` of ${amount(q.deserved_devices)}`),
      h("span", { class: "words" }, inWords(q))))),
    keys([["used c0", "its own"], ["borrowed c0", "borrowed"], ["risk", "at risk of being called back"], ["lent", "lent to others"], ["deserved", "deserved"], ["guarantee", "guaranteed"]]));
}

function bullet(q, most) {
  const at = (v) => (Math.min(v, most) / most) * 100 + "%";
  const own = Math.max(0, q.used_devices - q.borrowed_devices);
  const limit = q.limit_devices < 0 ? most : q.limit_devices;
  const part = (name, from, size) => size > 0 && h("i", { class: name, style: { left: at(from), width: at(size) } });
  return h("span", { class: "bullet " + colourOf(q.name), tabindex: "0", role: "img", "aria-label": `${q.called}: ${inWords(q)}`, "data-tip": `${q.called}: ${inWords(q)}` },
    h("i", { class: "track", style: { left: "0", width: at(limit) } }),
    part("used", 0, own), part("borrowed", own, q.borrowed_devices), part("risk", q.used_devices - q.at_risk_devices, q.at_risk_devices), part("lent", q.used_devices, q.lent_devices),
    q.guarantee_devices > 0 && h("i", { class: "guarantee", style: { left: at(q.guarantee_devices) } }), h("i", { class: "deserved", style: { left: at(q.deserved_devices) } }));
}

function inWords(q) {
  const parts = [`uses ${amount(q.used_devices)} of ${amount(q.deserved_devices)} deserved`];
  if (q.borrowed_devices > 0) parts.push(`${amount(q.borrowed_devices)} borrowed`);
  if (q.at_risk_devices > 0) parts.push(`${amount(q.at_risk_devices)} at risk`);
  if (q.lent_devices > 0) parts.push(`lends ${amount(q.lent_devices)}`);
  if (q.waiting_jobs > 0) parts.push(`${count(q.waiting_jobs, "job waits", "jobs wait")}`);
  return parts.join(", ");
}

function overTime(queues, history, ctx) {
  if (!history || history.points.length < 2) {
    return card("Over time", null, h("p", { class: "nothing" }, history ? "The history has just begun: it shows as soon as there are two points." : "This server keeps no history of shares."));
  }
  const shown = history.queues.map((name, i) => ({ name, below: history.queues.flatMap((other, k) => (k !== i && parentOf(queues, other) === name ? [k] : [])), i }));
  const points = thin(history.points, 400);
  // What a queue uses includes what those below it do: stacked are the parts that are its own.
  const layers = shown.map(({ name, i, below }) => ({ name: name || "no queue of its own", class: colourOf(name), values: points.map((p) => Math.max(0, below.reduce((left, k) => left - (p.used_devices[k] ?? 0), p.used_devices[i] ?? 0))) }))
    .filter((layer) => layer.values.some((v) => v > 0));
  const width = Math.min(ctx.width() - 42, 1200);
  const total = ctx.snapshot()?.cluster.devices.total;
  const now = ofUs(points[points.length - 1].at_us);
  return card("Over time", `Devices in use by queue since ${time(ofUs(points[0].at_us), now)}.` + (total ? ` The dashed line is all ${devices(total)} of the cluster.` : ""),
    stack({ width, height: 240, words: "Devices in use by queue over time", xs: points.map((p) => p.at_us / 1e6), limit: total, y: { format: amount },
      series: layers, tip: (at) => instant(ofUs(points[at].at_us)) + "\n" + layers.map((layer) => `${layer.name}: ${amount(layer.values[at])}`).join("\n") }),
    keys(layers.map((layer) => [layer.class, layer.name])));
}

function parentOf(queues, name) {
  const q = queues.find((one) => one.name === name);
  return q && q.parent !== name ? q.parent : undefined;
}

function thin(points, most) {
  const every = Math.ceil(points.length / most);
  return points.filter((_, i) => i % every === 0 || i === points.length - 1);
}

function figures(queues, shares) {
  const name = (q) => h("span", { class: "indent", style: { "--depth": q.depth } }, q.called);
  const column = (title, field, unit) => ({ name: title, unit, cell: (q) => amount(q[field]) });
  return card("Figures", shares.half_life_s > 0 ? `Past use counts half after ${rough(shares.half_life_s)}: who used little lately is served before who used much.` : "Past use does not count here.",
    table("Figures by queue", [
      { name: "Queue", left: true, cell: name }, column("Guaranteed", "guarantee_devices"), column("Deserved", "deserved_devices"), column("Used", "used_devices"),
      column("Borrowed", "borrowed_devices"), column("Lent", "lent_devices"), column("At risk", "at_risk_devices"), { name: "Limit", cell: (q) => (q.limit_devices < 0 ? "none" : amount(q.limit_devices)) },
      { name: "Weight", cell: (q) => amount(q.weight) }, { name: "Priority", cell: (q) => String(q.priority) }, { name: "Past use", unit: "device-hours", cell: (q) => amount(Math.round(q.past_device_hours * 10) / 10) },
      { name: "Running", unit: "jobs", cell: (q) => String(q.running_jobs) }, { name: "Waiting", unit: "jobs", cell: (q) => String(q.waiting_jobs) },
    ], queues, (q) => ({ "data-key": q.name })),
    h("p", { class: "hint" }, "All but weight, priority, past use and jobs are devices."),
    queues.some((q) => q.arithmetic) && h("details", null, h("summary", null, "The arithmetic"),
      h("dl", { class: "facts one" }, queues.filter((q) => q.arithmetic).map((q) => h("div", { "data-key": q.name }, h("dt", null, q.called), h("dd", null, q.arithmetic))))));
}
