// The cluster map: every node a cell, every device a square in it, and the totals.

import { card, choices, code, empty, h, jobLink, link, patch, table, tile, badge } from "./dom.js";
import { amount, colourOf, count, devices, instant, ofUs, percent, queueOf, span } from "./words.js";
import { problem } from "./problem.js";

export const title = "Cluster";
export const about = "Every node, every device, and who is on it.";

let editions = 0; // of cells; none comes twice

const crowded = 40, vast = 400; // nodes from which cells become smaller

export function open(root, ctx) {
  const drawn = { layout: "", cells: new Map() };
  const draw = () => {
    const snap = ctx.snapshot();
    if (!snap) {
      patch(root, ctx.failure() ? problem(ctx.failure(), "the cluster") : h("p", { class: "waiting" }, "Asking the server."));
      return;
    }
    if (snap.nodes.length === 0) drawn.layout = "";
    patch(root, totals(snap.cluster), snap.nodes.length === 0 ? card(null, null, empty("This cluster has no nodes", "Muster found no device on this machine. Declare what it may use:", code("muster up --slots 4")))
      : [mapCard(snap, ctx.params, drawn), detail(snap, ctx.params)], nothingYet(snap));
  };
  ctx.onChange(draw);
  draw();
}

function nothingYet(snap) {
  if (Object.values(snap.cluster.jobs).some((n) => n > 0) || snap.nodes.length === 0) return null;
  return card(null, null, empty("No job has been submitted yet", "Any command can be a job:", code("muster submit -- python3 train.py"),
    h("p", null, "It appears here as soon as it has a device.")));
}

function totals(c) {
  const d = c.devices, usable = d.total - d.lost;
  const part = usable > 0 ? d.granted / usable : 0;
  const jobs = (phase) => c.jobs[phase] ?? 0;
  const away = [d.closed && `${amount(d.closed)} closed to new work`, d.lost && `${amount(d.lost)} lost`].filter(Boolean).join(", ");
  const waits = [c.queue.held && `${c.queue.held} held`, c.queue.blocked && `${c.queue.blocked} after others`, c.queue.backoff && `${c.queue.backoff} to be tried again`].filter(Boolean).join(", ");
  return h("section", { class: "tiles", "aria-label": "Totals" },
    tile("Devices in use", [amount(d.granted), h("small", null, " of " + amount(d.total))], percent(part) + " of those that work",
      h("div", { class: "meter", "aria-hidden": "true" }, h("i", { style: { width: part * 100 + "%" } }))),
    tile("Devices free", amount(d.free), away || "none closed, none lost"),
    tile("Jobs running", jobs("active"), count(jobs("finished"), "has finished", "have finished") + (jobs("failed") ? `, ${jobs("failed")} failed` : "")),
    tile("Jobs waiting", c.queue.waiting, waits || `for ${devices(c.queue.devices)} in all`),
    tile("Longest wait", c.queue.oldest ? span(c.queue.oldest_s) : "–", c.queue.oldest ? jobLink(c.queue.oldest) : "nobody waits"));
}

function mapCard(snap, params, drawn) {
  const by = params.get("by") === "state" ? "state" : "queue";
  const jobs = new Map(snap.jobs.map((j) => [j.name, j]));
  const racks = new Map();
  for (const n of snap.nodes) racks.set(n.rack ?? "", [...(racks.get(n.rack ?? "") ?? []), n]);
  const size = snap.nodes.length > vast ? "vast" : snap.nodes.length > crowded ? "crowded" : "roomy";
  const seen = new Set();
  const layout = by + "\n" + snap.nodes.map((n) => n.name + "\t" + n.rack).join("\n");
  if (layout !== drawn.layout) {
    drawn.layout = layout;
    drawn.cells.clear();
  }
  const cells = [...racks].map(([rack, nodes]) => h("div", { class: "rack", "data-key": rack },
    racks.size > 1 && h("h3", null, rack || "No rack", h("span", { class: "unit" }, " " + count(nodes.length, "node", "nodes"))),
    h("div", { class: "nodes " + size }, nodes.map((n) => kept(n, by, jobs, seen, params, drawn.cells)))));
  return h("section", { class: "card" },
    h("div", { class: "bar" }, h("h2", null, "Map"), choices("Colour by", [[mapAddress(params, "by", ""), "By queue", by === "queue"], [mapAddress(params, "by", "state"), "By state", by === "state"]])),
    cells, legend(by, seen));
}

function mapAddress(params, name, value) {
  const to = new URLSearchParams(params);
  if (value) to.set(name, value);
  else to.delete(name);
  return "#/" + (to.size ? "?" + to : "");
}

// kept is a node's cell, without its content where it stands there already: of a big
// cluster little changes from one look to the next.
function kept(n, by, jobs, seen, params, cells) {
  const holders = n.devices.flatMap((d) => (d.holders ?? []).map((x) => queueOf(jobs.get(x.job))));
  const sign = JSON.stringify([n, holders, String(params)]);
  const before = cells.get(n.name);
  if (before?.sign === sign) {
    before.seen.forEach((k) => seen.add(k));
    return h("a", { "data-key": n.name, "data-same": before.edition });
  }
  const own = new Set();
  const one = cell(n, by, jobs, own, params);
  const edition = String(++editions);
  one.setAttribute("data-same", edition);
  cells.set(n.name, { sign, seen: own, edition });
  own.forEach((k) => seen.add(k));
  return one;
}

function cell(n, by, jobs, seen, params) {
  const used = n.devices.reduce((sum, d) => sum + (d.status === "lost" ? 0 : 1 - d.free), 0);
  const usable = n.devices.filter((d) => d.status !== "lost").length;
  const names = [...new Set(n.devices.flatMap((d) => (d.holders ?? []).map((x) => x.job)))];
  const words = `${n.name}, ${n.status}: ${amount(used)} of ${devices(usable)} in use` + (names.length ? `, by ${names.slice(0, 4).join(", ")}${names.length > 4 ? " and others" : ""}` : "");
  const chosen = params.get("node") === n.name;
  return h("a", { class: "node is-" + n.status + (chosen ? " chosen" : ""), style: { "--columns": columns(n.devices.length) }, "data-key": n.name, href: mapAddress(params, "node", chosen ? "" : n.name), "aria-label": words, "data-tip": words },
    h("span", { class: "name" }, h("b", null, n.name), h("span", null, n.status === "up" ? `${amount(used)}/${usable}` : n.status)),
    h("span", { class: "devices" }, n.devices.map((d) => square(d, n, by, jobs, seen))));
}

// columns is how many devices stand beside each other: two rows of them from five on.
export function columns(count) {
  return String(Math.max(2, Math.min(8, count > 4 ? Math.ceil(count / 2) : count)));
}

// square is one device: what of it is taken, from the bottom up.
function square(d, n, by, jobs, seen) {
  const lost = d.status === "lost" || n.status === "down";
  if (lost) seen.add("lost");
  else if (n.status !== "up" && d.free > 0) seen.add("closed");
  else if (d.status !== "steady") seen.add(d.status);
  else if (d.free > 0) seen.add("free");
  const parts = lost ? [] : (d.holders ?? []).map((x) => {
    const key = by === "state" ? x.run : queueOf(jobs.get(x.job));
    seen.add(key || "no queue");
    return h("i", { class: by === "state" ? "run-" + x.run : colourOf(key), style: { height: Math.min(1, x.share) * 100 + "%" } });
  });
  return h("span", { class: "device" + (lost ? " lost" : n.status !== "up" ? " closed" : d.status !== "steady" ? " changing" : "") }, parts);
}

const stateWords = { promised: "promised", starting: "starting", running: "running", suspended: "suspended", resuming: "resuming", stopping: "stopping" };
const roomWords = { free: "free", closed: "closed to new work", lost: "lost", reshaping: "being cut anew", arriving: "arriving" };

function legend(by, seen) {
  const runs = Object.keys(stateWords), rooms = Object.keys(roomWords);
  const work = by === "state" ? runs.filter((k) => seen.has(k)) : [...seen].filter((k) => !rooms.includes(k)).sort();
  const key = (classes, text) => h("li", { "data-key": text }, h("span", { class: "device key " + (rooms.includes(classes) ? classes : "") }, !rooms.includes(classes) && h("i", { class: classes, style: { height: "100%" } })), text);
  return h("ul", { class: "legend", "aria-label": "Legend" },
    work.map((k) => (by === "state" ? key("run-" + k, stateWords[k]) : key(k === "no queue" ? "cx" : colourOf(k), k))),
    rooms.filter((k) => seen.has(k)).map((k) => key(k, roomWords[k])));
}

function detail(snap, params) {
  const name = params.get("node");
  if (!name) return null;
  const n = snap.nodes.find((x) => x.name === name);
  if (!n) return card("Node " + name, null, h("p", null, "There is no such node. It may have left the cluster."));
  const jobs = new Map(snap.jobs.map((j) => [j.name, j]));
  return h("section", { class: "card" },
    h("div", { class: "bar" }, h("h2", null, n.name, " ", badge(n.status)), link(mapAddress(params, "node", ""), "Close")),
    h("p", { class: "hint" }, [n.model, n.rack && "rack " + n.rack, `${amount(n.free)} of ${devices(n.devices.length)} free`, `${amount(n.free_cpu)} cores free`, `${amount(n.free_memory_mib / 1024)} GiB of memory free`, ...(n.windows ?? []).map((w) => `maintenance from ${instant(ofUs(w.from_us))} to ${instant(ofUs(w.to_us))}`)].filter(Boolean).join(" · ")),
    table("Devices of " + n.name, [
      { name: "Device", left: true, cell: (d) => String(d.id) },
      { name: "State", left: true, cell: (d) => [d.status, d.geometry && ", cut as " + d.geometry] },
      { name: "Memory", unit: "GiB", cell: (d) => amount(d.memory_mib / 1024) },
      { name: "Free", unit: "devices", cell: (d) => amount(d.free) },
      { name: "Held by", left: true, wrap: true, cell: (d) => (d.holders ?? []).map((x, i) => [i > 0 && ", ", jobLink(x.job), ` ${queueOf(jobs.get(x.job)) && "(" + queueOf(jobs.get(x.job)) + ") "}${x.run}${x.share < 1 ? ", " + percent(x.share) : ""}`]) },
    ], n.devices));
}
