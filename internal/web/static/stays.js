// What a job went through, told from its dossier: a value, so that it can be tested.

const begins = { start: "runs", resume: "runs", stop: "waits", suspend: "pauses" };

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
  if (last.kind === "runs" && job.phase !== "active" && !job.ended) {
    // It ended by itself, which is no decision: when is known from how long it ran in all.
    const before = list.slice(0, -1).reduce((sum, x) => sum + (x.kind === "runs" ? x.to - x.from : 0), 0);
    last.to = Math.min(last.to, last.from + Math.max(0, job.ran_s - before));
    list.push({ kind: "waits", from: last.to, to: end, words: "waits", reason: job.reason });
  }
  return list.filter((x) => x.to > x.from);
}
