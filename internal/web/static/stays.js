// What a job went through, told from its dossier: a value, so that it can be tested.

const begins = { start: "runs", resume: "runs", stop: "waits", fail: "waits", suspend: "pauses" };

// stays are the stretches of a job's life in order: {kind: "waits" | "runs" | "pauses",
// from, to, words, reason}, times in seconds. Where the dossier has forgotten the
// beginning, the stretch before what it remembers counts as waiting.
export function stays(job, decisions, now) {
  const end = job.ended ? Date.parse(job.ended) / 1000 : now;
  const list = [{ kind: "waits", from: Date.parse(job.submitted) / 1000, words: "waits", reason: "" }];
  for (const d of decisions) {
    const kind = begins[d.verb];
    const last = list[list.length - 1];
    if (!kind || (kind === last.kind && kind !== "runs")) continue;
    const at = Date.parse(d.at) / 1000;
    last.to = at;
    list.push({ kind, from: at, words: kind === "runs" ? "attempt " + d.attempt : kind === "pauses" ? "suspended" : "waits", reason: d.reason });
  }
  const last = list[list.length - 1];
  last.to = Math.max(end, last.from);
  return list.filter((x) => x.to > x.from);
}
