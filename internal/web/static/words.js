// How numbers, times and colours are written: everywhere the same, and as the command
// line writes them.

// span writes seconds in the two units that matter: "45s", "12m05s", "3h25m", "12d03h".
export function span(sec) {
  if (sec === undefined || sec === null || !Number.isFinite(sec)) return "–";
  if (sec < 0) return "-" + span(-sec);
  if (sec > 0 && sec < 1) return Math.round(sec * 1000) + "ms";
  if (sec < 10 && sec !== Math.floor(sec)) return sec.toFixed(1) + "s";
  const two = (small, per, big, little) => {
    const n = Math.floor(sec / small);
    return Math.floor(n / per) + big + String(n % per).padStart(2, "0") + little;
  };
  if (sec < 60) return Math.floor(sec) + "s";
  if (sec < 3600) return two(1, 60, "m", "s");
  if (sec < 86400) return two(60, 60, "h", "m");
  return two(3600, 24, "d", "h");
}

// rough writes seconds in one unit: for axes and estimates, which are no better.
export function rough(sec) {
  if (sec < 0) return "-" + rough(-sec);
  if (sec < 90) return Math.round(sec) + "s";
  if (sec < 90 * 60) return Math.round(sec / 60) + "m";
  if (sec < 36 * 3600) return trim(sec / 3600, 1) + "h";
  return trim(sec / 86400, 1) + "d";
}

// trim writes a number with at most so many digits after the point.
export function trim(x, digits) {
  return String(Number(x.toFixed(digits)));
}

// amount writes a count of devices: parts of one where there are any.
export function amount(n) {
  return n === undefined || n === null ? "–" : trim(n, 2);
}

export function devices(n) {
  return n === 1 ? "1 device" : amount(n) + " devices";
}

export function count(n, one, many) {
  return n === 1 ? "1 " + one : n.toLocaleString("en") + " " + many;
}

export function percent(part) {
  return part === undefined || part === null || !Number.isFinite(part) ? "–" : Math.round(part * 100) + " %";
}

// loss writes a loss in four figures.
export function loss(x) {
  return x ? String(Number(x.toPrecision(4))) : "–";
}

// sentence begins what the server worded with a capital letter, as it stands alone here;
// not where it begins with a name, which is shown as it is written.
export function sentence(words, snapshot) {
  if (!words) return "–";
  const first = words.split(/[\s,:]/)[0];
  const isName = !/^[a-z]+$/.test(first) || snapshot?.jobs.some((j) => j.name === first) || snapshot?.nodes.some((n) => n.name === first);
  return isName ? words : words[0].toUpperCase() + words.slice(1);
}

// ofUs is a time of the API's as a Date.
export function ofUs(us) {
  return new Date(us / 1000);
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

// time writes an instant: the clock, with the day where it is not that of now.
export function time(date, now) {
  const text = clock.format(date);
  return now && day.format(date) === day.format(now) ? text : day.format(date) + " " + text;
}

// instant writes an instant to the second.
export function instant(date) {
  return day.format(date) + " " + exact.format(date);
}

// away writes how far an instant is from now, in seconds: "in 12m", "3h ago", "now".
export function away(sec) {
  if (Math.abs(sec) < 1) return "now";
  return sec > 0 ? "in " + rough(sec) : rough(-sec) + " ago";
}

// startOf reads when a job starts: seconds from now, null for later than was looked.
export function startOf(when, nowUs) {
  const sec = (us) => (us === undefined ? null : Math.max(0, (us - nowUs) / 1e6));
  return { low: sec(when.low_us), mid: sec(when.median_us), high: sec(when.high_us) };
}

// ticks are round values from low to high, about so many.
export function ticks(low, high, about) {
  const raw = (high - low) / Math.max(1, about);
  if (!(raw > 0)) return [low];
  const ten = Math.pow(10, Math.floor(Math.log10(raw)));
  return spaced(low, high, ten * [1, 2, 5, 10].find((m) => m * ten >= raw * 0.999));
}

const timeSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2419200];

// timeTicks are round instants in seconds of the epoch, on the local clock.
export function timeTicks(low, high, about) {
  const raw = (high - low) / Math.max(1, about);
  const step = timeSteps.find((t) => t >= raw) ?? Math.ceil(raw / 2419200) * 2419200;
  const zone = -new Date(low * 1000).getTimezoneOffset() * 60;
  return spaced(low + zone, high + zone, step).map((t) => t - zone);
}

function spaced(low, high, step) {
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12) + step * 1e-9; i++) out.push(i * step);
  return out;
}

// axisTime writes a tick of a time axis that spans so many seconds.
export function axisTime(sec, spanSec) {
  const date = new Date(sec * 1000);
  if (spanSec < 300) return exact.format(date);
  if (spanSec <= 86400) return clock.format(date);
  return spanSec <= 4 * 86400 ? day.format(date) + " " + clock.format(date) : day.format(date);
}

// Colours belong to names for as long as the page lives: a name gets the colour its
// letters choose, or the next that is free; what comes after all are taken is grey.
const colours = 7;
const taken = new Map();

export function colourOf(name) {
  if (!name) return "cx";
  if (!taken.has(name)) {
    let slot = 0;
    for (const c of name) slot = (slot * 31 + c.codePointAt(0)) % colours;
    const used = new Set(taken.values());
    const free = [...Array(colours).keys()].map((i) => (slot + i) % colours).find((i) => !used.has(i));
    taken.set(name, free ?? -1);
  }
  const slot = taken.get(name);
  return slot < 0 ? "cx" : "c" + slot;
}

// stateOf is the one word for where a job stands, as muster ls says it.
export function stateOf(job) {
  return job.run || (job.phase === "active" ? "running" : job.phase);
}

// queueOf is the queue that a job is accounted to: that of its tenant where it names none.
export function queueOf(job) {
  return job?.queue || job?.tenant || "";
}
