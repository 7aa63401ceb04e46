// Defragmentation: the moves that would make room for a waiting gang, the map before and
// after them, and what they cost. Nothing is moved from here.

import { post, Failure } from "./api.js";
import { keys } from "./chart.js";
import { card, choices, empty, h, jobLink, patch, table } from "./dom.js";
import { amount, colourOf, count, devices, sentence, span } from "./words.js";
import { columns } from "./map.js";
import { problem } from "./problem.js";

export const title = "Defragment";
export const about = "Moves that would make room for a big job, shown before they are done.";

const mostOffered = 8; // waiting jobs to choose from

export function open(root, ctx) {
  const head = h("div"), answer = h("div", { "aria-live": "polite" });
  root.append(head, answer);
  const wanted = ctx.params.get("job") ?? "";
  const choose = () => {
    const big = (ctx.snapshot()?.jobs ?? []).filter((j) => j.phase === "waiting").sort((a, b) => b.devices - a.devices).slice(0, mostOffered);
    if (wanted && !big.some((j) => j.name === wanted)) big.push({ name: wanted, devices: null });
    patch(head, h("div", { class: "tools" }, h("span", null, "Make room for"), choices("Make room for", [["#/defrag", "whoever fits best", !wanted],
      ...big.map((j) => ["#/defrag?job=" + encodeURIComponent(j.name), j.devices === null ? j.name : `${j.name} (${devices(j.devices)})`, j.name === wanted])])));
  };
  ctx.onChange(choose);
  choose();
  patch(answer, h("p", { class: "waiting" }, "Planning the moves."));
  post("defrag", { ...(wanted && { job: wanted }), apply: false }, ctx.signal).then((plan) => patch(answer, page(plan)), (error) => {
    if (!ctx.signal.aborted && error instanceof Failure) patch(answer, problem(error, "defragmentation"));
  });
}

function page(plan) {
  if (!plan.moves?.length) return card(null, null, empty("There is nothing to move", plan.words || "No sequence of moves would make more room."));
  const moving = [...new Set([...plan.moves.map((m) => m.job), ...(plan.starts ? [plan.starts.job] : [])])];
  return [
    h("section", { class: "card" }, h("p", { class: "sentence" }, sentence(plan.words)),
      h("p", { class: "hint" }, `${count(plan.moves.length, "move", "moves")} for ${amount(Math.round(plan.price_device_hours * 100) / 100)} device-hours in all. This is a plan: nothing has been moved.`)),
    h("div", { class: "pair" }, map("Before", plan.before, moving, plan.after), map("After", plan.after, moving, plan.before)),
    keys([...moving.slice(0, 7).map((name) => [colourOf(name), name === plan.starts?.job ? name + ", which starts" : name]), ["stays", "stays where it is"], ["free", "free"]]),
    card("Moves", "In this order: each makes room for the next.", table("Moves", [
      { name: "", left: true, cell: (m) => String(plan.moves.indexOf(m) + 1) },
      { name: "Job", left: true, cell: (m) => [h("i", { class: "dot " + colourOf(m.job) }), jobLink(m.job)] },
      { name: "Devices", cell: (m) => amount(m.devices) },
      { name: "From", left: true, cell: (m) => m.from.join(", ") },
      { name: "To", left: true, cell: (m) => m.to.join(", ") },
      { name: "Price", unit: "of its time", cell: (m) => span(m.price_s) },
    ], plan.moves, null, "cards")),
  ];
}

function map(name, nodes, moving, others) {
  const room = (n) => n.devices.filter((job) => job === "").length;
  const was = new Map(others.map((n) => [n.node, n]));
  const whole = nodes.filter((n) => n.devices.length > 0 && room(n) === n.devices.length).length;
  return h("section", { class: "card" }, h("h2", null, name),
    h("p", { class: "hint" }, `${count(whole, "node is", "nodes are")} free as a whole, ${devices(nodes.reduce((sum, n) => sum + room(n), 0))} in all.`),
    h("div", { class: "nodes roomy" }, nodes.map((n) => {
      const changed = JSON.stringify(was.get(n.node)?.devices) !== JSON.stringify(n.devices);
      const words = `${n.node}: ` + (n.devices.map((job) => job || "free").join(", ") || "no devices");
      return h("div", { class: "node" + (changed ? " changed" : ""), style: { "--columns": columns(n.devices.length) }, tabindex: "0", role: "img", "aria-label": words, "data-tip": words },
        h("span", { class: "name" }, h("b", null, n.node), h("span", null, room(n) === 0 ? "full" : room(n) + " free")),
        h("span", { class: "devices" }, n.devices.map((job) => h("span", { class: "device" }, job && h("i", { class: moving.includes(job) ? colourOf(job) : "stays", style: { height: "100%" } })))));
    })));
}
