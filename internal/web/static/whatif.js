// What if: the cluster as it is run forward twice, once as it is and once with a change,
// and the two futures side by side. The address says what is asked.

import { post, Failure } from "./api.js";
import { lines } from "./chart.js";
import { card, empty, h, jobLink, patch, table } from "./dom.js";
import { amount, count, instant, ofUs, percent, rough, sentence, span, time } from "./words.js";
import { problem } from "./problem.js";

export const title = "What if";
export const about = "Two futures of the cluster: as it is, and with a change.";

const hour = 3600;
const mostJobs = 100; // rows of the table

// fields are what can be asked; each is a parameter of the address.
const fields = [
  { name: "strategy", text: "Another strategy", hint: "a name that muster strategies lists", placeholder: "fifo" },
  { name: "nodes", text: "More nodes", hint: "so many more of the kind there is", type: "number", min: 0 },
  { name: "without", text: "Without nodes", hint: "names, separated by commas", placeholder: "node3, node4" },
  { name: "queue", text: "Queue", hint: "whose guarantee changes", placeholder: "research" },
  { name: "guarantee", text: "Guarantee", hint: "devices that it is sure of", type: "number", min: 0 },
  { name: "horizon", text: "How far ahead", hint: "hours", type: "number", min: 1, placeholder: "24" },
];

export function open(root, ctx) {
  const answer = h("div", { "aria-live": "polite" });
  root.append(form(ctx), answer);
  const asked = question(ctx.params);
  if (!asked) {
    patch(answer, card(null, null, empty("Change something, and compare", "The running cluster is not touched: its state is copied and run forward twice, with what it believes of its jobs.")));
    return;
  }
  patch(answer, h("p", { class: "waiting" }, "Running both futures."));
  post("whatif", asked, ctx.signal).then((result) => {
    const draw = () => patch(answer, page(result, ctx));
    ctx.onChange(draw);
    draw();
  }, (error) => {
    if (!ctx.signal.aborted && error instanceof Failure) patch(answer, problem(error, "what-if"));
  });
}

// question is the request that an address stands for, or null where it asks nothing.
export function question(params) {
  const q = {};
  if (params.get("strategy")) q.strategy = params.get("strategy");
  if (Number(params.get("nodes")) > 0) q.add_nodes = Number(params.get("nodes"));
  const without = (params.get("without") ?? "").split(/[\s,]+/).filter(Boolean);
  if (without.length > 0) q.remove_nodes = without;
  if (params.get("queue") && params.get("guarantee")) q.queue = { name: params.get("queue"), guarantee_devices: Number(params.get("guarantee")) };
  if (params.get("job")) q.job = params.get("job");
  if (Object.keys(q).length === 0) return null;
  if (Number(params.get("horizon")) > 0) q.horizon_s = Number(params.get("horizon")) * hour;
  return q;
}

function form(ctx) {
  const inputs = fields.map((f) => {
    const input = h("input", { id: "f-" + f.name, name: f.name, type: f.type ?? "text", min: f.min, placeholder: f.placeholder, autocomplete: "off", spellcheck: "false", "aria-describedby": "d-" + f.name });
    input.value = ctx.params.get(f.name) ?? "";
    return { input, row: h("div", { class: "field" }, h("label", { for: "f-" + f.name }, f.text), input, h("small", { id: "d-" + f.name }, f.hint)) };
  });
  const job = h("textarea", { id: "f-job", name: "job", rows: 5, spellcheck: "false", placeholder: "name: big\nworkers: 16\nestimate: 6h" });
  job.value = ctx.params.get("job") ?? "";
  const say = h("p", { class: "complaint", role: "alert" });
  const submit = (event) => {
    event.preventDefault();
    const to = new URLSearchParams();
    for (const { input } of [...inputs, { input: job }]) if (input.value.trim()) to.set(input.name, input.value.trim());
    if (Boolean(to.get("queue")) !== Boolean(to.get("guarantee"))) say.textContent = "A queue and its guarantee go together: fill in both, or neither.";
    else if (!question(to)) say.textContent = "Change at least one thing: a strategy, nodes, a guarantee, or a job.";
    else if (location.hash === "#/whatif?" + to) dispatchEvent(new HashChangeEvent("hashchange")); // ask again
    else location.hash = "#/whatif?" + to;
  };
  return h("form", { class: "card", on: { submit } }, h("h2", null, "The change"), h("div", { class: "fields" }, inputs.map((i) => i.row)),
    h("details", { open: Boolean(job.value) }, h("summary", null, "A job that is not submitted yet"), h("div", { class: "field wide" }, h("label", { for: "f-job" }, "Job, as YAML"), job)),
    h("div", { class: "buttons" }, say, h("button", { type: "submit", class: "primary" }, "Run both futures")));
}

function page(result, ctx) {
  return [h("section", { class: "card" }, h("p", { class: "sentence" }, sentence(result.words, ctx.snapshot()))),
    h("div", { class: "pair futures" }, future("As it is", result.base, null, result, ctx), future("With the change", result.alternative, result.base, result, ctx)),
    moved(result)];
}

const figures = [
  { name: "Mean wait", field: "mean_wait_s", write: span, lower: true },
  { name: "Mean completion", field: "mean_jct_s", write: span, lower: true },
  { name: "Utilisation", field: "utilisation", write: percent },
  { name: "Preemptions", field: "preemptions", write: amount, lower: true },
  { name: "Jobs finished", field: "finished", write: amount },
];

// future is one side: its figures, against the other's where it is given, and its pictures
// on the scales of both.
function future(name, side, base, result, ctx) {
  const width = ctx.width() < 900 ? ctx.width() - 42 : (ctx.width() - 18) / 2 - 42;
  const both = [...result.base.series, ...result.alternative.series];
  const x = { low: Math.min(...both.map((p) => p.at_us)) / 1e6, high: Math.max(...both.map((p) => p.at_us)) / 1e6 };
  const picture = (title, field, colour) => [h("h3", null, title), both.length < 2 ? h("p", { class: "nothing" }, "There is nothing to draw.") : lines({
    width, height: 150, words: title + ", " + name.toLowerCase(), step: true, x, y: { low: 0, high: Math.max(1, ...both.map((p) => p[field])), format: amount },
    series: [{ class: colour, area: true, points: side.series.map((p) => [p.at_us / 1e6, p[field]]) }],
    tip: (i) => `${instant(ofUs(side.series[i].at_us))}: ${amount(side.series[i][field])}` })];
  return h("section", { class: "card" }, h("h2", null, name),
    h("dl", { class: "compare" }, figures.map((f) => h("div", null, h("dt", null, f.name), h("dd", null, h("b", null, f.write(side[f.field])), base ? difference(f, base, side) : h("span", null, "\u00a0"))))),
    picture("Devices busy", "busy_devices", base ? "c1" : "c0"), picture("Jobs waiting", "waiting_jobs", base ? "c1" : "c0"));
}

function difference(f, base, side) {
  const change = side[f.field] - base[f.field];
  if (Math.abs(change) <= 1e-9 * Math.max(1, Math.abs(base[f.field]))) return h("span", { class: "same" }, "the same");
  const points = f.write === percent;
  const text = points ? amount(Math.round(Math.abs(change) * 1000) / 10) + " points" : (f.write === span ? rough : f.write)(Math.abs(change));
  const relative = !points && base[f.field] > 0 ? ` (${change > 0 ? "+" : "−"}${Math.round(Math.abs(change / base[f.field]) * 100)} %)` : "";
  return h("span", { class: change < 0 === Boolean(f.lower) ? "better" : "worse" }, `${text} ${change > 0 ? "more" : "less"}${relative}`);
}

// moved lists the jobs by how much the change matters to them.
function moved(result) {
  const later = (j, what) => (j["alternative_" + what + "_us"] > 0 && j["base_" + what + "_us"] > 0 ? (j["alternative_" + what + "_us"] - j["base_" + what + "_us"]) / 1e6 : null);
  const jobs = result.jobs.map((j) => ({ ...j, start: later(j, "start"), end: later(j, "end") }));
  if (jobs.length === 0) return card("Jobs", null, h("p", { class: "nothing" }, "No job's future differs."));
  const size = (j) => (j.end ?? j.start) === null ? Infinity : Math.abs(j.end ?? j.start);
  jobs.sort((a, b) => size(b) - size(a) || (a.job < b.job ? -1 : 1));
  const most = Math.max(1, ...jobs.map(size).filter(Number.isFinite));
  const began = result.base.series.length > 0 ? ofUs(result.base.series[0].at_us) : new Date();
  const at = (us) => (us > 0 ? time(ofUs(us), began) : "not in this time");
  const earlier = jobs.filter((j) => j.end < 0).length, worse = jobs.filter((j) => j.end > 0).length;
  return card("Jobs", `${count(earlier, "job ends", "jobs end")} earlier with the change, ${worse.toLocaleString("en")} later.`, table("Jobs in both futures", [
    { name: "Job", left: true, cell: (j) => jobLink(j.job) },
    { name: "Starts as it is", cell: (j) => at(j.base_start_us) }, { name: "Starts with it", cell: (j) => at(j.alternative_start_us) },
    { name: "Ends as it is", cell: (j) => at(j.base_end_us) }, { name: "Ends with it", cell: (j) => at(j.alternative_end_us) },
    { name: "End moves", left: true, cell: (j) => delta(j.end, most) },
  ], jobs.slice(0, mostJobs), (j) => ({ "data-key": j.job }), "cards"), jobs.length > mostJobs && h("p", { class: "hint" }, `The ${mostJobs} that it matters most to, of ${jobs.length.toLocaleString("en")}.`));
}

// delta is a bar to the left for earlier and to the right for later, with words.
function delta(sec, most) {
  if (sec === null) return "–";
  const width = Math.max(1, (Math.abs(sec) / most) * 50) + "%";
  return h("span", { class: "delta" }, h("span", { class: "axis", "aria-hidden": "true" }, sec !== 0 && h("i", { class: sec < 0 ? "earlier" : "later", style: { width } })),
    sec === 0 ? "the same" : `${rough(Math.abs(sec))} ${sec < 0 ? "earlier" : "later"}`);
}
