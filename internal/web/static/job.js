// A job's page: where it stands, why and until when, its losses, what was decided
// about it, and the end of what it prints.

import { get, text, Failure } from "./api.js";
import { keys, lines } from "./chart.js";
import { badge, card, empty, h, jobLink, link, patch, table, tile } from "./dom.js";
import { curveOf } from "./losses.js";
import { planCard } from "./plan.js";
import { stays } from "./stays.js";
import { amount, away, colourOf, count, devices, instant, loss, ofUs, percent, queueOf, rough, sentence, span, startOf, stateOf, time } from "./words.js";
import { places } from "./queue.js";
import { problem } from "./problem.js";

export const title = "Job";
export const about = "";

const over = ["finished", "failed", "cancelled", "refused"];
const askEvery = 10; // seconds
const logKept = 64 << 10; // letters of the log that are shown

export function open(root, ctx) {
  const body = h("div"), log = h("pre", { class: "log", tabindex: "0", "aria-label": "What rank 0 printed" });
  const logCard = h("section", { class: "card", hidden: true }, h("h2", null, "Log"), h("p", { class: "hint" }), log);
  root.append(body, logCard);
  const path = "jobs/" + encodeURIComponent(ctx.argument);
  const known = { job: null, steps: null, why: null, when: null, plan: null, failure: null };
  const draw = () => {
    const live = ctx.snapshot()?.jobs.find((j) => j.name === known.job?.name);
    if (live) known.job = live;
    const stands = live ? [live.phase, live.run, live.attempt].join() : "ended";
    if (known.job && known.stands !== stands) {
      if (known.stands) look(); // something was decided: what it was is asked for at once
      known.stands = stands;
    }
    if (known.failure) patch(body, missing(known.failure, ctx.argument));
    else if (!known.job) patch(body, h("p", { class: "waiting" }, "Asking the server."));
    else patch(body, page(known, ctx));
  };
  const one = async (what, to) => {
    try {
      known[to] = await get(path + what, ctx.signal);
      if (to === "job") known.failure = null;
    } catch (error) {
      if (!(error instanceof Failure)) return;
      if (to === "job" && !known.job) known.failure = error;
      else known[to] = error.notOffered ? undefined : known[to];
    }
    if (!ctx.signal.aborted) draw();
  };
  const look = async () => {
    await one("", "job");
    if (!known.job) return;
    await Promise.all([one("/steps", "steps"), one("/why", "why"), known.plan !== undefined && one("/plan", "plan"), known.job.phase === "waiting" && known.when !== undefined && one("/when", "when")]);
  };
  ctx.onChange(draw);
  ctx.every(askEvery, look);
  follow(path, ctx, logCard, log);
}

function missing(failure, name) {
  if (failure.status !== 404) return problem(failure, "jobs");
  return card(null, null, empty("There is no job of this name", `Nothing called ${name} was ever submitted here, or it is not yours to see.`, link("#/queue", "Go to the queue")));
}

// follow shows the end of the log, and what is printed from now on.
async function follow(path, ctx, box, log) {
  const hint = box.querySelector(".hint");
  try {
    for await (const piece of text(`${path}/logs?follow=1`, ctx.signal)) {
      const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 30;
      const all = log.textContent + piece;
      log.textContent = all.length > logKept ? all.slice(all.indexOf("\n", all.length - logKept) + 1) : all;
      hint.textContent = all.length > logKept ? "The end of what rank 0 printed. All of it: muster logs JOB" : "What rank 0 printed.";
      box.hidden = false;
      if (atEnd) log.scrollTop = log.scrollHeight;
    }
    if (!log.textContent) hint.textContent = "Nothing was printed.";
  } catch (error) {
    if (!(error instanceof Failure) || error.notOffered || error.status === 404) return;
    hint.textContent = sentence(error.message) + ".";
    log.hidden = !log.textContent;
  }
  box.hidden = false;
}

function page(known, ctx) {
  const { job, steps, why, when, plan } = known;
  const width = Math.min(ctx.width() - 42, 1200);
  return [
    tiles(job, ctx),
    job.phase === "waiting" && h("div", { class: "pair" }, whyCard(job, why, ctx), whenCard(when, ctx)),
    facts(job),
    job.phase !== "waiting" && (!over.includes(job.phase) || job.phase === "failed" && !job.failure) && whyCard(job, why, ctx),
    job.failure && job.phase !== "finished" && failureCard(why?.failure || job.failure),
    timeline(job, steps, width, ctx),
    lossCard(job, width),
    planCard(plan, width),
    dossier(steps),
  ];
}

function facts(job) {
  const submitted = new Date(job.submitted);
  const list = [["Queue", queueOf(job) ? [h("i", { class: "dot " + colourOf(queueOf(job)) }), queueOf(job)] : "none named"], ["User", job.user || "unknown"],
    ["Gang", count(job.gang, "worker", "workers") + ", " + devices(job.devices)], ["Priority", job.priority ?? 0], ["Submitted", instant(submitted)],
    job.estimate_s && ["Expected to run", span(job.estimate_s)], job.time_limit_s && ["Time limit", span(job.time_limit_s)],
    job.due && ["Deadline", instant(new Date(job.due.deadline)) + ", " + job.due.words],
    job.after?.length && ["After", job.after.map((name, i) => [i > 0 && ", ", jobLink(name)])], job.where?.length && ["Where", places(job.where)],
    job.dir && ["Directory", h("code", null, job.dir)], job.command?.length && ["Command", h("code", null, job.command.join(" "))]].filter(Boolean);
  return h("section", { class: "card" }, h("dl", { class: "facts" }, list.map(([name, value]) => h("div", { "data-key": name }, h("dt", null, name), h("dd", null, value)))));
}

function tiles(job, ctx) {
  const now = ctx.snapshot() ? new Date(ctx.snapshot().cluster.at) : new Date();
  const tries = [job.attempt > 0 ? "attempt " + job.attempt : "not started yet", job.preemptions > 0 && "preempted " + count(job.preemptions, "time", "times"), job.restarts > 0 && count(job.restarts, "restart", "restarts")];
  return h("section", { class: "tiles", "aria-label": "Where it stands" },
      tile("State", badge(stateOf(job)), job.run ? "has devices" : job.ended ? "since " + time(new Date(job.ended), now) : "has no devices"),
      tile("Waited", span(job.waited_s), "in all"), tile("Ran", span(job.ran_s), tries.filter(Boolean).join(", ")),
      tile("Progress", percent(job.progress), job.left_s ? "expects " + rough(job.left_s) + " more" : "as last reported", h("div", { class: "meter" }, h("i", { style: { width: job.progress * 100 + "%" } }))),
      tile("Loss", loss(job.last_loss), job.first_loss ? "began at " + loss(job.first_loss) : "none reported"));
}

function whyCard(job, why, ctx) {
  const words = sentence(why?.words || why?.reason || job.reason, ctx.snapshot());
  const title = job.phase === "active" ? "Why it runs" : job.phase === "failed" ? "Why it failed" : "Why it waits";
  return h("section", { class: "card" }, h("h2", null, title), h("p", { class: "sentence" }, words),
    why?.obstacles?.length > 0 && [h("h3", null, "The nodes"), obstacles(why.obstacles)],
    why?.needs?.length > 0 && [h("h3", null, "What would have to change"), h("ul", { class: "plain" }, why.needs.map((n) => h("li", null, n)))],
    why?.holders?.length > 0 && [h("h3", null, "Who holds it"), holders(why.holders)],
    why?.tried && h("p", { class: "hint" }, `Last tried ${instant(ofUs(why.tried.at_us))}: ${why.tried.words}`),
    why?.detail?.length > 0 && h("details", { open: !why.obstacles?.length }, h("summary", null, "The counts behind it"), h("ul", { class: "plain" }, why.detail.map((d) => h("li", null, d)))));
}

// failureCard says how the latest attempt that failed did so.
function failureCard(f) {
  const list = [["Attempt", f.attempt], ["Whose failure", f.class], f.node && ["Where", (f.rank >= 0 ? "rank " + f.rank + " on " : "") + f.node], f.signal && ["Signal", f.signal], f.exit_code && ["Exit code", f.exit_code],
    f.memory_limit_mib && ["Memory limit", f.memory_limit_mib + " MiB"], f.memory_peak_mib && ["Memory at most", f.memory_peak_mib + " MiB"]].filter(Boolean);
  return h("section", { class: "card" }, h("h2", null, "Why it failed"), h("p", { class: "sentence" }, sentence(f.words)),
    h("dl", { class: "facts", style: { "margin-top": "8px" } }, list.map(([name, value]) => h("div", { "data-key": name }, h("dt", null, name), h("dd", null, value)))),
    f.last_lines?.length > 0 && [h("h3", null, "The last it printed"), h("pre", { class: "log", tabindex: "0" }, f.last_lines.join("\n"))]);
}

function obstacles(list) {
  const most = Math.max(1, ...list.map((o) => o.nodes));
  return h("ul", { class: "bars" }, list.map((o) => h("li", null, h("span", { class: "what" }, o.obstacle), h("span", { class: "meter" }, h("i", { style: { width: (o.nodes / most) * 100 + "%" } })), h("span", { class: "n" }, count(o.nodes, "node", "nodes")))));
}

function holders(list) {
  return table("Who holds it", [
    { name: "Job", left: true, cell: (x) => jobLink(x.job) },
    { name: "Queue", left: true, cell: (x) => x.queue || "–" },
    { name: "Devices", cell: (x) => amount(x.devices) },
    { name: "Until", cell: (x) => (x.until_us > 0 ? time(ofUs(x.until_us), new Date()) : "unknown") },
  ], list);
}

function whenCard(when, ctx) {
  if (when === undefined) return card("When it starts", null, h("p", { class: "muted" }, "This server does not offer estimates of when a job starts."));
  if (when === null) return card("When it starts", null, h("p", { class: "muted" }, "No estimate has been made yet."));
  const nowUs = ctx.snapshot() ? Date.parse(ctx.snapshot().cluster.at) * 1000 : Date.now() * 1000;
  if (when.words || when.low_us === undefined) return card("When it starts", null, h("p", { class: "sentence" }, when.never && [h("b", null, "Never, as things are"), ": "], when.words || "Nothing is known of it."));
  const { low, mid, high } = startOf(when, nowUs);
  const end = high ?? (mid ?? low) * 2 + 1; // of the picture
  const scale = Math.max(end * 1.1, 1), at = (v) => (v / scale) * 100 + "%";
  const c = when.calibration;
  return h("section", { class: "card" }, h("h2", null, "When it starts"),
    h("p", { class: "sentence" }, mid === null ? `Not before ${rough(low)} from now; how much later, nobody knows` : [h("b", null, sentence(away(mid))), high === null ? `, not before ${rough(low)} from now` : `, most likely between ${rough(low)} and ${rough(high)} from now`]),
    h("div", { class: "range", role: "img", "aria-label": `from ${rough(low)} ${high === null ? "or later" : "to " + rough(high)}${mid === null ? "" : `, at ${rough(mid)} with even odds`}` },
      h("i", { class: "span", style: { left: at(low), width: ((end - low) / scale) * 100 + "%" } }), mid !== null && h("i", { class: "median", style: { left: at(mid) } }),
      h("span", { style: { left: "0" } }, "now"), high !== null && h("span", { style: { left: at(high) } }, time(ofUs(when.high_us), ofUs(nowUs)))),
    h("p", { class: "hint" }, `${when.samples ? `From ${count(when.samples, "possible future", "possible futures")}: ` : "From "}${when.basis}.`),
    c?.promises > 0 && h("p", { class: "hint" }, `Of ${count(c.promises, "past promise", "past promises")}${c.queue ? " in queue " + c.queue : ""}, ${percent(c.coverage)} fell inside their range. `, link("#/promises", "All promises")));
}

// timeline draws what the dossier tells of attempts.
function timeline(job, steps, width, ctx) {
  const now = ctx.snapshot() ? Date.parse(ctx.snapshot().cluster.at) / 1000 : Date.now() / 1000;
  const list = stays(job, steps?.decisions ?? [], now);
  if (list.length === 0) return null;
  const from = Date.parse(job.submitted) / 1000, to = Math.max(from + 1, job.ended ? Date.parse(job.ended) / 1000 : now);
  const at = (t) => ((t - from) / (to - from)) * 100;
  return card("Attempts", `From ${instant(new Date(from * 1000))} to ${job.ended ? instant(new Date(to * 1000)) : "now"}, ${span(to - from)} in all.`,
    h("div", { class: "strip", role: "img", "aria-label": list.map((x) => `${x.words} for ${span(x.to - x.from)}`).join(", ") },
      list.map((x, i) => h("i", { class: "stay-" + x.kind, "data-key": i + x.kind, "data-tip": `${x.words} for ${span(x.to - x.from)}${x.reason ? ": " + x.reason : ""}`, style: { left: at(x.from) + "%", width: Math.max(0.3, at(x.to) - at(x.from)) + "%" } },
        ((x.to - x.from) / (to - from)) * width > 8 * x.words.length && h("span", null, x.words)))),
    keys([["waits", "waits"], ["runs", "has its devices"], ["pauses", "suspended"]].filter(([kind]) => list.some((x) => x.kind === kind)).map(([kind, text]) => ["stay-" + kind, text])));
}

function lossCard(job, width) {
  const curve = curveOf(job);
  if (curve.length === 0) return null;
  const drawn = Math.max(260, width);
  const byProgress = curve[curve.length - 1].progress > 0;
  const x = (p) => (byProgress ? p.progress * 100 : p.atSec);
  const points = curve.map((p) => [x(p), p.loss]);
  const low = Math.min(...points.map((p) => p[1])), high = Math.max(...points.map((p) => p[1]));
  const margin = Math.max((high - low) * 0.12, Math.abs(high) * 0.02, 1e-6);
  return card("Loss", `From ${loss(job.first_loss)} to ${loss(job.last_loss)}. The server tells the first and the latest, so the curve is what this page has seen while it was open; nobody knows the dotted part.`,
    lines({ width: drawn, height: 220, words: `Loss from ${loss(job.first_loss)} to ${loss(job.last_loss)}`, series: curve[0].unseen ? [{ class: "c0 unseen", points: points.slice(0, 2) }, { class: "c0", points: points.slice(1) }] : [{ class: "c0", points }],
      x: byProgress ? { low: 0, high: Math.max(100 * job.progress, 1), format: (v) => v + " %" } : { high: Math.max(points[points.length - 1][0], points[0][0] + 1) },
      y: { low: Math.max(0, low - margin), high: high + margin, format: (v) => loss(v) === "–" ? "0" : loss(v) },
      tips: points.map((p) => p[0]), tip: (i) => `loss ${loss(curve[i].loss)} at ${percent(curve[i].progress)}, attempt ${curve[i].attempt}` }),
    h("p", { class: "axis" }, byProgress ? "progress of the job" : "time"));
}

const stepNames = { 1: "Profile", 2: "Allocate", 3: "Schedule", 4: "Pipeline", 5: "Flow", 6: "Run" };
const stepAsks = { 1: "How long, how big?", 2: "Which devices?", 3: "Who goes first?", 4: "Which layer where?", 5: "Which bytes first?", 6: "How is it run?" };

// dossier tells the latest decision that walked the six steps, and the others below it.
function dossier(steps) {
  if (!steps) return null;
  if (steps.decisions.length === 0) return card("Dossier", null, h("p", { class: "nothing" }, "Nothing has been decided about it yet."));
  const latest = steps.decisions.findLast((d) => d.steps?.length) ?? steps.decisions[steps.decisions.length - 1];
  return h("section", { class: "card dossier" }, h("h2", null, "Dossier"),
    h("p", { class: "hint" }, `The latest decision that went through the steps: ${latest.verb}, attempt ${latest.attempt}, ${instant(new Date(latest.at))}. Because: ${latest.reason}.`),
    h("ol", { class: "steps" }, (latest.steps ?? []).map((step) => h("li", { "data-key": step.number },
      h("h3", null, h("span", { class: "number", "aria-hidden": "true" }, step.number), stepNames[step.number] ?? step.name, h("small", null, stepAsks[step.number])),
      h("p", { class: "chose" }, step.chose), h("p", { class: "rejected" }, "rather than " + step.rejected), h("p", { class: "because" }, step.because)))),
    h("details", null, h("summary", null, count(steps.decisions.filter((d) => d.verb !== "fail").length, "decision", "decisions") + " in all"),
      table("Decisions", [
        { name: "At", left: true, cell: (d) => instant(new Date(d.at)) }, { name: "Decision", left: true, cell: (d) => d.verb },
        { name: "Attempt", cell: (d) => String(d.attempt) }, { name: "Why", left: true, wrap: true, cell: (d) => d.reason },
      ], [...steps.decisions].reverse())));
}
