// The losses that running jobs reported while the page was open. The server tells the
// first and the latest, so a curve is what somebody watched.

const kept = 600; // points of a job; older ones are thinned
const curves = new Map(); // job -> [{atSec, progress, loss, attempt}]

// note takes in a snapshot.
export function note(snapshot) {
  const atSec = Date.parse(snapshot.cluster.at) / 1000;
  for (const job of snapshot.jobs) {
    if (!job.last_loss) continue;
    const curve = curves.get(job.name) ?? [];
    const last = curve[curve.length - 1];
    if (last && last.loss === job.last_loss && last.attempt === job.attempt) continue;
    curve.push({ atSec, progress: job.progress, loss: job.last_loss, attempt: job.attempt });
    curves.set(job.name, curve.length > kept ? curve.filter((_, i) => i % 2 === 0 || i === curve.length - 1) : curve);
  }
}

// curveOf is a job's curve, the first reported loss first: what was between that and
// what was seen is marked as unseen.
export function curveOf(job) {
  const seen = curves.get(job.name) ?? [];
  const points = seen.length === 0 && job.last_loss
    ? [{ atSec: Date.parse(job.ended ?? "") / 1000 || Date.now() / 1000, progress: job.progress, loss: job.last_loss, attempt: job.attempt }] : seen;
  if (!job.first_loss || points[0]?.loss === job.first_loss) return points;
  return [{ atSec: Date.parse(job.started) / 1000, progress: 0, loss: job.first_loss, attempt: 1, unseen: true }, ...points];
}
