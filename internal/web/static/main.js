// The frame around the views: which one the address names, what stands in the head and
// at the side, and who may ask.

import { Live, get, setToken, token } from "./api.js";
import { empty, h, link, patch, s } from "./dom.js";
import { note } from "./losses.js";
import { tips } from "./tips.js";
import * as calendar from "./calendar.js";
import * as defrag from "./defrag.js";
import * as job from "./job.js";
import * as map from "./map.js";
import * as promises from "./promises.js";
import * as queue from "./queue.js";
import * as shares from "./shares.js";
import * as whatif from "./whatif.js";

const views = new Map([["", map], ["queue", queue], ["job", job], ["shares", shares], ["calendar", calendar],
  ["whatif", whatif], ["defrag", defrag], ["promises", promises]]);
const listed = ["", "queue", "shares", "calendar", "whatif", "defrag", "promises"];
const redrawEvery = 1000; // milliseconds: snapshots may come faster than anybody reads

const live = new Live();
const main = document.getElementById("main");
let version = null, me = null; // what answers, and as whom it knows who looks
let leave = () => {};

// where reads the address: #/queue?q=x, #/job/NAME.
function where() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  let argument = rest.join("/");
  try {
    argument = decodeURIComponent(argument);
  } catch {
    // Half a percent sign, typed by hand: taken as it is written.
  }
  return { name, argument, params: new URLSearchParams(query ?? "") };
}

// context is what a view is given: what the address says, the cluster, and a way to be
// told of changes that ends when the view is left.
function context(place, ending) {
  const redraws = new Set();
  const redraw = () => redraws.forEach((f) => f());
  let next = 0, later = 0;
  const soon = () => {
    if (later) return;
    later = setTimeout(() => {
      const began = performance.now();
      later = 0;
      redraw();
      // What takes long to draw is drawn less often, so that the page always answers.
      next = began + Math.max(redrawEvery, 5 * (performance.now() - began));
    }, Math.max(0, next - performance.now()));
  };
  live.listeners.add(soon);
  window.addEventListener("resize", soon, { signal: ending });
  ending.addEventListener("abort", () => { live.listeners.delete(soon); clearTimeout(later); });
  return {
    ...place,
    signal: ending,
    snapshot: () => live.snapshot,
    failure: () => (live.snapshot ? null : live.error),
    width: () => Math.max(280, main.clientWidth),
    onChange: (f) => { redraws.add(f); },
    // every calls f now and again and again, while anybody looks.
    every: (seconds, f) => {
      f();
      const timer = setInterval(() => { if (!document.hidden) f(); }, seconds * 1000);
      ending.addEventListener("abort", () => clearInterval(timer));
    },
  };
}

function show() {
  leave();
  const ending = new AbortController();
  leave = () => ending.abort();
  const place = where();
  const view = views.get(place.name);
  const root = h("div", { class: "view view-" + (place.name || "map") });
  main.replaceChildren(root);
  if (!view) {
    root.append(empty("There is no such page", "The address names nothing that the console shows.", link("#/", "Go to the cluster map")));
  }
  const title = place.argument || view?.title || "Not found";
  document.title = title + " – Muster";
  frame();
  view?.open(root, context(place, ending.signal));
  window.scrollTo(0, 0);
}

// frame draws the side and the head.
function frame() {
  const place = where();
  const cluster = live.snapshot?.cluster;
  patch(document.getElementById("side"),
    h("a", { class: "brand", href: "#/" }, h("img", { src: new URL("icon.svg", import.meta.url), alt: "", width: 26, height: 26 }), h("span", null, "Muster")),
    h("ul", null, listed.map((name) => {
      const here = name === place.name || (name === "queue" && place.name === "job");
      return h("li", null, h("a", { href: "#/" + name, class: here ? "here" : null, "aria-current": here ? "page" : null }, icon(name), h("span", null, views.get(name).title)));
    })),
    h("div", { class: "foot" }, !token() && h("a", { href: "../" }, "Report of the past"), // a link carries no token
      h("a", { href: "#", "data-sign": "1" }, token() ? "Sign out" : "Sign in"), me?.name && h("span", { "data-tip": me.tenants?.length ? "sees " + me.tenants.join(", ") : null }, `${me.name}, ${me.role}`), version && h("span", null, "Version " + version.version)));
  const view = views.get(place.name);
  patch(document.getElementById("head"),
    h("div", null, h("h1", null, place.argument || view?.title || "Not found"), h("p", { class: "about" }, place.argument ? "Job" : view?.about)),
    h("div", { class: "now" }, cluster && h("span", { class: "cluster" }, h("b", null, cluster.name), h("span", { class: "strategy" }, cluster.strategy)), standing()));
}

// standing says whether what is shown is of now.
function standing() {
  const words = { connecting: "Connecting", live: "Live", lost: live.snapshot ? "Not connected, trying again" : "Not connected" };
  return h("span", { class: "standing is-" + live.state, role: "status", "data-tip": live.error?.message }, h("i", { "aria-hidden": "true" }), words[live.state]);
}

const strokes = {
  "": "M3 3h6v6H3zM11 3h6v6h-6zM3 11h6v6H3zM11 11h6v6h-6z",
  queue: "M3 5h14M3 10h14M3 15h8",
  shares: "M4 17V9M10 17V3M16 17v-5",
  calendar: "M3 5h14v12H3zM3 9h14M7 3v4M13 3v4",
  whatif: "M4 17V3M4 12c6 0 4-6 12-6M4 12c6 0 5 4 12 4",
  defrag: "M3 3h5v5H3zM12 3h5v5h-5zM3 12h5v5H3zM12 14.5h5M14.5 12v5",
  promises: "M4 10.5l4 4 8-9",
};

function icon(name) {
  return s("svg", { viewBox: "0 0 20 20", class: "icon", "aria-hidden": "true" }, s("path", { d: strokes[name] }));
}

// enter begins anew, as whoever the token of now is of.
function enter() {
  live.snapshot = null;
  live.start();
  show();
  [version, me] = [null, null]; // without them the side has a line less
  get("version").then((v) => { version = v; frame(); }, () => {});
  get("whoami").then((w) => { me = w; frame(); }, () => {});
}

// sign asks for a token, or forgets the one there is.
function sign() {
  if (token()) {
    setToken("");
    enter();
    return;
  }
  const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true, spellcheck: "false" });
  const dialog = h("dialog", { class: "sign", "aria-labelledby": "sign-title" });
  const done = () => { dialog.close(); dialog.remove(); };
  dialog.append(h("form", { on: { submit: (event) => {
    event.preventDefault();
    setToken(input.value.trim());
    done();
    enter();
  } } }, h("h2", { id: "sign-title" }, "Sign in"),
  h("p", { class: "hint" }, "With a token that an operator of this cluster made for you. It is kept until this tab is closed, and sent to this server only."),
  h("label", { for: "token" }, "Token"), input,
  h("div", { class: "buttons" }, h("button", { type: "button", on: { click: done } }, "Cancel"), h("button", { type: "submit", class: "primary" }, "Sign in"))));
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("click", (event) => {
  const target = event.target.closest?.("[data-sign], #skip");
  if (!target) return;
  event.preventDefault();
  if (target.id === "skip") main.focus();
  else sign();
});
window.addEventListener("hashchange", show);
live.listeners.add(() => {
  if (live.snapshot) note(live.snapshot);
  frame();
});
tips(document.getElementById("tip"));
enter();
