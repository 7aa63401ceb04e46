// Charts as SVG, drawn at the width they are shown at so that text keeps its size.

import { h, s } from "./dom.js";
import { axisTime, ticks, timeTicks } from "./words.js";

// frame is the part of a chart that all have: scales and axes. Times are seconds of the
// epoch. It returns the scales and the elements.
export function axes({ width, height, left = 44, right = 12, top = 10, bottom = 24, x, y }) {
  const inner = { left, top, right: width - right, bottom: height - bottom };
  const spanX = Math.max(x.high - x.low, 1e-9), spanY = Math.max(y.high - y.low, 1e-9);
  const at = {
    x: (v) => inner.left + ((v - x.low) / spanX) * (inner.right - inner.left),
    y: (v) => inner.bottom - ((v - y.low) / spanY) * (inner.bottom - inner.top),
    ...inner,
  };
  const about = Math.max(2, Math.floor((inner.right - inner.left) / 90));
  const timeAxis = !x.format;
  const marks = timeAxis ? timeTicks(x.low, x.high, about) : ticks(x.low, x.high, about);
  const parts = ticks(y.low, y.high, Math.max(2, Math.floor((inner.bottom - inner.top) / 28))).map((v) => [
    s("line", { class: "rule", x1: inner.left, x2: inner.right, y1: at.y(v), y2: at.y(v) }),
    s("text", { class: "label end", x: inner.left - 8, y: at.y(v) + 4 }, y.format(v))]);
  parts.push(marks.map((v) => s("text", { class: "label mid", x: Math.min(at.x(v), width - 18), y: height - 6 }, timeAxis ? axisTime(v, spanX) : x.format(v))));
  parts.push(s("line", { class: "base", x1: inner.left, x2: inner.right, y1: inner.bottom, y2: inner.bottom }));
  return { at, parts };
}

// figure wraps a drawing for those who see it and those who have it read.
export function figure(width, height, words, ...parts) {
  return s("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words }, parts);
}

function path(points, at, step) {
  return points.map(([x, y], i) => {
    const px = at.x(x).toFixed(1), py = at.y(y).toFixed(1);
    if (i === 0) return `M${px} ${py}`;
    return step ? `H${px}V${py}` : `L${px} ${py}`;
  }).join("");
}

// lines draws series of [x, y] as lines: {name, class, points, area}. With step the
// value holds until the next point. tip words the point of an index, of those at tips or
// of the first series.
export function lines({ width, height, words, series, x, y, step, tips, tip }) {
  const shown = series.filter((one) => one.points.length > 0);
  const xs = shown.flatMap((one) => one.points.map((p) => p[0]));
  const ys = shown.flatMap((one) => one.points.map((p) => p[1]));
  x = { low: Math.min(...xs), high: Math.max(...xs), ...x };
  y = { low: Math.min(0, ...ys), high: Math.max(...ys, Math.min(0, ...ys) + 1e-9), ...y };
  const { at, parts } = axes({ width, height, x, y });
  for (const one of shown) {
    const d = path(one.points, at, step);
    const to = one.points[one.points.length - 1][0], from = one.points[0][0];
    if (one.area) parts.push(s("path", { class: "area " + one.class, d: `${d}V${at.y(y.low)}H${at.x(from)}Z`, "data-key": "area" + to }));
    parts.push(s("path", { class: "line " + one.class, d }));
    if (one.points.length === 1) parts.push(s("circle", { class: "point " + one.class, cx: at.x(one.points[0][0]), cy: at.y(one.points[0][1]), r: 4 }));
  }
  if (shown.length > 0) parts.push(hits(tips ?? shown[0].points.map((p) => p[0]), at, tip));
  return figure(width, height, words, parts);
}

// stack draws series of values over the same instants on top of each other.
export function stack({ width, height, words, xs, series, y, tip, limit }) {
  const sums = xs.map(() => 0);
  const x = { low: xs[0], high: Math.max(xs[xs.length - 1], xs[0] + 1) };
  const high = Math.max(1e-9, limit ?? 0, ...xs.map((_, i) => series.reduce((sum, one) => sum + one.values[i], 0)));
  const { at, parts } = axes({ width, height, x, y: { low: 0, high, ...y } });
  for (const one of series) {
    const low = sums.map((v, i) => [xs[i], v]);
    one.values.forEach((v, i) => { sums[i] += v; });
    const up = sums.map((v, i) => [xs[i], v]);
    const back = low.reverse().map(([bx, v], i) => (i === 0 ? `L${at.x(bx)} ${at.y(v)}` : `V${at.y(v)}H${at.x(bx)}`)).join("");
    parts.push(s("path", { class: "layer " + one.class, d: path(up, at, true) + back + "Z" }));
  }
  if (limit) parts.push(s("line", { class: "limit", x1: at.left, x2: at.right, y1: at.y(limit), y2: at.y(limit) }));
  parts.push(hits(xs, at, tip));
  return figure(width, height, words, parts);
}

const mostHits = 160;

// hits are invisible strips that say what was there.
function hits(xs, at, tip) {
  const every = Math.ceil(xs.length / mostHits);
  const chosen = xs.map((x, i) => [x, i]).filter((_, i) => i % every === 0);
  return chosen.map(([x, index], i) => {
    const left = i === 0 ? at.left : (at.x(x) + at.x(chosen[i - 1][0])) / 2;
    const right = i === chosen.length - 1 ? at.right : (at.x(x) + at.x(chosen[i + 1][0])) / 2;
    return [s("rect", { class: "hit", x: left, y: at.top, width: Math.max(0.5, right - left), height: at.bottom - at.top, "data-tip": tip(index) }),
      s("line", { class: "cross", x1: at.x(x), x2: at.x(x), y1: at.top, y2: at.bottom })];
  });
}

// keys name the colours of a chart.
export function keys(list) {
  return h("ul", { class: "legend" }, list.map(([classes, text]) => h("li", { "data-key": text }, h("i", { class: "swatch " + classes }), text)));
}

// pack puts intervals {from, to} into as few rows as go without overlap and returns
// how many there are; each interval is told its row.
export function pack(list) {
  const ends = [];
  for (const one of [...list].sort((a, b) => a.from - b.from || b.to - a.to)) {
    let row = ends.findIndex((end) => end <= one.from);
    if (row < 0) row = ends.length;
    ends[row] = one.to;
    one.row = row;
  }
  return Math.max(1, ends.length);
}

const barHeight = 20, lanePadding = 4;

// gantt draws lanes of bars: [{name, href, bars: [{from, to, cut, open, class, text, tip, href}]}],
// times in seconds. It returns an element that scrolls where it is narrower than needed.
export function gantt({ width, words, lanes, from, to, now, labelWidth = 130 }) {
  const drawn = Math.max(width, 560), headHeight = 38;
  let height = headHeight;
  for (const lane of lanes) {
    lane.top = height;
    lane.rows = pack(lane.bars);
    height += lane.rows * barHeight + 2 * lanePadding;
  }
  const span = Math.max(1, to - from), px = (t) => labelWidth + ((Math.min(Math.max(t, from), to) - from) / span) * (drawn - labelWidth - 8);
  const parts = [timeTicks(from, to, (drawn - labelWidth) / 100).map((t) => [
    s("line", { class: "rule", x1: px(t), x2: px(t), y1: headHeight - 18, y2: height }),
    s("text", { class: "label mid", x: Math.min(px(t), drawn - 24), y: 14 }, axisTime(t, span))])];
  for (const lane of lanes) {
    parts.push(s("line", { class: "rule", x1: 0, x2: drawn, y1: lane.top, y2: lane.top }));
    const label = s("text", { class: "lane", x: 0, y: lane.top + 18, "data-tip": lane.name }, clip(lane.name, labelWidth - 10));
    parts.push(lane.href ? s("a", { href: lane.href }, label) : label);
    parts.push(lane.bars.map((b) => bar(b, px, lane.top + lanePadding + b.row * barHeight)));
  }
  if (now >= from && now <= to) parts.push(s("line", { class: "now", x1: px(now), x2: px(now), y1: headHeight - 3, y2: height }), s("text", { class: "label nowlabel mid", x: Math.min(px(now), drawn - 14), y: headHeight - 7 }, "now"));
  return h("div", { class: "scroll chart-scroll", tabindex: "0", role: "region", "aria-label": words }, s("svg", { class: "chart gantt", width: drawn, height: height + 2, role: "group", "aria-label": words }, parts));
}

function bar(b, px, top) {
  const x = px(b.from), w = Math.max(2, px(b.to) - x), tall = barHeight - 3;
  const body = [s("rect", { class: "bar " + b.class, x, y: top, width: w, height: tall, rx: 3 }), s("rect", { class: "edge " + (b.cut ? "cut" : b.class), x, y: top, width: Math.min(3, w), height: tall })];
  if (b.open) body.push(s("path", { class: "open", d: `M${x + w - 9} ${top + 4}l5 ${tall / 2 - 4}l-5 ${tall / 2 - 4}` }));
  const text = clip(b.text, w - 12 - (b.open ? 10 : 0));
  if (text.length > 1) body.push(s("text", { class: "inside", x: x + 7, y: top + 12.5 }, text));
  return s("a", { href: b.href, "data-tip": b.tip, "aria-label": b.tip, "data-key": b.key }, body);
}

const letter = 6.6; // width of a letter at the size of labels, about

// clip shortens text to what fits in so many pixels.
export function clip(text, room) {
  const fits = Math.floor(room / letter);
  return text.length <= fits ? text : fits < 3 ? "" : text.slice(0, fits - 1) + "…";
}
