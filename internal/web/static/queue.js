// The queue: what runs, what waits, and for every waiting job why and until when.

import { get, Failure } from "./api.js";
import { badge, card, code, empty, h, jobLink, patch, table } from "./dom.js";
import { amount, away, colourOf, count, instant, loss, percent, queueOf, rough, sentence, span, startOf, stateOf } from "./words.js";
import { problem } from "./problem.js";

export const title = "Queue";
export const about = "What runs, and for each job that waits the reason and the time.";

const asked = 60; // waiting jobs that the server is asked about, the first in the list
const atOnce = 3; // questions under way
const askEvery = 20; // seconds
const finePrint = 200; // rows of one table

export function open(root, ctx) {
  const answers = new Map(); // job -> {why, when}
  const missing = { why: null, when: null }; // what the server does not offer, or refuses
  const filter = h("input", { type: "search", id: "filter", placeholder: "job, queue, user", value: ctx.params.get("q") ?? "", on: { input: () => {
    history.replaceState(null, "", "#/queue" + (filter.value ? "?q=" + encodeURIComponent(filter.value) : ""));
    draw();
  } } });
  const body = h("div");
  root.append(h("div", { class: "tools" }, h("label", { for: "filter" }, "Show only"), filter), body);

  const wanted = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    return (ctx.snapshot()?.jobs ?? []).filter((j) => words.every((w) => [j.name, j.tenant, j.queue, j.user, stateOf(j)].join(" ").toLowerCase().includes(w)));
  };
  const draw = () => {
    const snap = ctx.snapshot();
    if (!snap) patch(body, ctx.failure() ? problem(ctx.failure(), "the queue") : h("p", { class: "waiting" }, "Asking the server."));
    else patch(body, lists(wanted(), snap, answers, missing));
  };
  ctx.onChange(draw);
  draw();
  let asking = false;
  const ask = async () => {
    if (asking || !ctx.snapshot()) return;
    asking = true;
    const jobs = wanted().filter((j) => j.phase !== "active").slice(0, asked);
    const worker = async () => {
      for (let j = jobs.shift(); j && !ctx.signal.aborted; j = jobs.shift()) {
        await question(j, answers, missing, ctx.signal);
        draw();
      }
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
    asking = false;
  };
  ctx.onChange(() => { if (wanted().some((j) => j.phase !== "active" && !answers.has(j.name))) ask(); });
  ctx.every(askEvery, ask);
}

async function question(j, answers, missing, signal) {
  const one = async (what) => {
    if (missing[what]) return undefined;
    try {
      return await get(`jobs/${encodeURIComponent(j.name)}/${what}`, signal);
    } catch (error) {
      if (error instanceof Failure && (error.notOffered || error.status === 401 || error.status === 403)) missing[what] = error;
      return undefined;
    }
  };
  const [why, when] = await Promise.all([one("why"), j.phase === "waiting" ? one("when") : undefined]);
  if (!signal.aborted) answers.set(j.name, { why, when });
}

function lists(jobs, snap, answers, missing) {
  const waiting = jobs.filter((j) => j.phase !== "active"), running = jobs.filter((j) => j.phase === "active");
  if (snap.jobs.length === 0) {
    return card(null, null, empty("Nothing runs and nothing waits", "Submit a job:", code("muster submit --workers 2 -- python3 train.py"), h("p", null, "Jobs that have ended: muster ls --all")));
  }
  if (jobs.length === 0) return card(null, null, empty("No job matches", "Other words find others: parts of a job's, a queue's or a user's name."));
  const noWhen = missing.when && (missing.when.notOffered ? "This server does not offer estimates of when a job starts." : missing.when.message);
  return [
    card(`Waiting, ${waiting.length.toLocaleString("en")}`, noWhen, waiting.length === 0 ? h("p", { class: "nothing" }, "Nobody waits.") : waitingTable(waiting.slice(0, finePrint), snap, answers, missing), more(waiting.length - finePrint)),
    card(`Running, ${running.length.toLocaleString("en")}`, null, running.length === 0 ? h("p", { class: "nothing" }, "Nothing runs.") : runningTable(running.slice(0, finePrint)), more(running.length - finePrint)),
    snap.jobs_left_out > 0 && h("p", { class: "hint" }, `${count(snap.jobs_left_out, "more job is", "more jobs are")} not in this list: muster ls shows all of them.`),
  ];
}

function more(n) {
  return n > 0 && h("p", { class: "hint" }, `${n.toLocaleString("en")} more: narrow the list with the words above.`);
}

function queueCell(j) {
  return queueOf(j) ? [h("i", { class: "dot " + colourOf(queueOf(j)) }), queueOf(j)] : "–";
}

function waitingTable(jobs, snap, answers, missing) {
  const nowUs = Date.parse(snap.cluster.at) * 1000;
  const columns = [
    { name: "Job", left: true, cell: (j) => [jobLink(j.name), stateOf(j) !== "waiting" && [" ", badge(stateOf(j))]] },
    { name: "Queue", left: true, cell: queueCell },
    { name: "Devices", cell: (j) => amount(j.devices) },
    { name: "Waited", cell: (j) => span(j.waited_s) },
    { name: "Why it waits", left: true, wrap: true, cell: (j) => whyCell(j, answers.get(j.name)?.why, snap) },
  ];
  if (jobs.some((j) => j.due)) columns.push(deadline);
  if (!missing.when) columns.push({ name: "Starts", left: true, cell: (j) => whenCell(j, answers.get(j.name)?.when, nowUs) });
  return table("Waiting jobs", columns, jobs, (j) => ({ "data-key": j.name }), "cards");
}

function whyCell(j, why, snap) {
  return h("span", { class: "why" }, sentence(why?.words || why?.reason || j.reason, snap));
}

function whenCell(j, when, nowUs) {
  if (j.phase !== "waiting") return "–";
  if (!when) return h("span", { class: "muted" }, "…");
  if (when.words || when.low_us === undefined) return h("span", { class: "when", "data-tip": when.words }, when.never ? h("b", null, "never") : "–");
  const { low, mid, high } = startOf(when, nowUs);
  return h("span", { class: "when", "data-tip": when.basis }, h("b", null, mid === null ? "after " + rough(low) : away(mid)),
    mid !== null && h("span", { class: "muted" }, ` ${rough(low)} ${high === null ? "or later" : "to " + rough(high)}`));
}

// deadline is shown where some job has one.
const deadline = { name: "Deadline", left: true, cell: (j) => (j.due ? h("span", { "data-tip": j.due.words }, instant(new Date(j.due.deadline)), j.due.late_s > 0 && h("b", null, " late")) : "–") };

function runningTable(jobs) {
  const columns = [
    { name: "Job", left: true, cell: (j) => [jobLink(j.name), stateOf(j) !== "running" && [" ", badge(stateOf(j))]] },
    { name: "Queue", left: true, cell: queueCell },
    { name: "User", left: true, cell: (j) => j.user || "–" },
    { name: "Devices", cell: (j) => amount(j.devices) },
    { name: "Where", left: true, cell: (j) => places(j.where) },
    { name: "Ran", cell: (j) => span(j.ran_s) },
    { name: "Progress", left: true, cell: (j) => h("span", { class: "progress" }, h("span", { class: "meter" }, h("i", { style: { width: j.progress * 100 + "%" } })), percent(j.progress)) },
    { name: "Loss", cell: (j) => loss(j.last_loss) },
    { name: "Preempted", unit: "times", cell: (j) => String(j.preemptions) },
  ];
  if (jobs.some((j) => j.due)) columns.push(deadline);
  return table("Running jobs", columns, jobs, (j) => ({ "data-key": j.name }), "cards");
}

// places writes where a run is: "node0:0-3, node1:0", the first few.
export function places(where) {
  const list = (where ?? []).map((p) => p.node + (p.devices?.length ? ":" + ranges(p.devices) : "") + (p.share ? ` (${percent(p.share)})` : ""));
  if (list.length <= 3) return list.join(", ") || "–";
  return h("span", { "data-tip": list.join(", ") }, list.slice(0, 2).join(", ") + ` and ${list.length - 2} more`);
}

function ranges(ids) {
  const out = [];
  for (const id of ids) {
    const last = out[out.length - 1];
    if (last && last[1] + 1 === id) last[1] = id;
    else out.push([id, id]);
  }
  return out.map(([a, b]) => (a === b ? a : a + "-" + b)).join(",");
}
