// Elements out of values. Text only ever becomes text nodes, so a name with markup in
// it is shown as it is written.

const svgNamespace = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, f] of Object.entries(value)) node.addEventListener(event, f);
    } else if (name === "style") {
      // Through the object model: the policy refuses style attributes.
      for (const [property, v] of Object.entries(value)) node.style.setProperty(property, v);
    } else {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false && c !== ""));
  return node;
}

// h makes an HTML element: h("p", {class: "hint"}, "text", child, [more, children]).
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// s makes an SVG element.
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(svgNamespace, tag), attributes, children);
}

// patch makes the children of a node those given, keeping the nodes that are there:
// focus, selection, scroll positions and opened details survive an update. What is
// patched carries no listeners, as those of the old nodes would stay; links and
// delegated events do. What has the same data-same as before is left as it is, so that it
// may come without its content.
export function patch(parent, ...children) {
  const wanted = children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false && c !== "");
  morph(parent, wanted.map((c) => (typeof c === "object" ? c : document.createTextNode(String(c)))));
}

function morph(parent, wanted) {
  const have = [...parent.childNodes];
  wanted.forEach((node, i) => {
    const old = have[i];
    if (!old) parent.append(node);
    else if (!alike(old, node)) old.replaceWith(node);
    else if (node.nodeType === Node.ELEMENT_NODE && node.hasAttribute("data-same") && old.getAttribute("data-same") === node.getAttribute("data-same")) return;
    else if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== node.data) old.data = node.data;
    } else {
      sync(old, node);
      morph(old, [...node.childNodes]);
    }
  });
  for (const old of have.slice(wanted.length)) old.remove();
}

// alike reports whether one node can become the other: what has a key only what has the same.
function alike(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName &&
    (a.nodeType !== Node.ELEMENT_NODE || a.getAttribute("data-key") === b.getAttribute("data-key"));
}

function sync(old, node) {
  for (const { name } of [...old.attributes]) {
    if (!node.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS") && name !== "style") old.removeAttribute(name);
  }
  for (const { name, value } of node.attributes) {
    if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.style && old.style.cssText !== node.style.cssText) old.style.cssText = node.style.cssText;
}

// link goes to a view.
export function link(href, text, attributes) {
  return h("a", { href, ...attributes }, text);
}

// jobLink names a job and goes to its page.
export function jobLink(name) {
  return link("#/job/" + encodeURIComponent(name), name, { class: "job" });
}

// card is a titled box.
export function card(title, hint, ...content) {
  return h("section", { class: "card" },
    title && h("h2", null, title), hint && h("p", { class: "hint" }, hint), ...content);
}

// empty says that there is nothing, and what to do about it.
export function empty(title, ...lines) {
  return h("div", { class: "empty" }, h("h2", null, title), lines.map((l) => (typeof l === "string" ? h("p", null, l) : l)));
}

// code is a command that can be copied.
export function code(text) {
  return h("pre", { class: "command" }, h("code", null, text));
}

// badge is a word for a state, with a class of its own.
export function badge(word) {
  return h("span", { class: "badge is-" + word.replace(/[^a-z-]/g, "") }, word);
}

// table lists rows under columns: [{name, left, unit, cell(row)}].
// With the class "cards" each row is a card of its own where there is little room.
export function table(label, columns, rows, rowAttributes, classes) {
  const head = columns.map((c) => h("th", { scope: "col", class: c.left && "left" }, c.name, c.unit && h("span", { class: "unit" }, " " + c.unit)));
  const body = rows.map((row) => h("tr", rowAttributes?.(row),
    columns.map((c) => h("td", { class: [c.left && "left", c.wrap && "wrap"].filter(Boolean).join(" ") || null, "data-name": c.name }, c.cell(row)))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", { class: classes }, h("thead", null, h("tr", null, head)), h("tbody", null, body)));
}

// tile is one figure with its name and what stands behind it.
export function tile(name, value, below, extra) {
  return h("div", { class: "tile" }, h("span", { class: "name" }, name), h("b", null, value), h("span", { class: "below" }, below), extra);
}

// choices are links of which one is chosen; each is a [href, text, chosen].
export function choices(label, list) {
  return h("div", { class: "choices", role: "group", "aria-label": label },
    list.map(([href, text, chosen]) => link(href, text, { class: chosen ? "chosen" : null, "aria-current": chosen ? "true" : null })));
}
