// Failures in words.

import { Failure, token } from "./api.js";
import { card, empty, h } from "./dom.js";
import { sentence } from "./words.js";

// problem tells of a failure in words, with what can be done about it.
export function problem(error, what) {
  if (!(error instanceof Failure)) throw error;
  if (error.notOffered) {
    return card(null, null, empty(`This server does not offer ${what}`, "It runs a version of Muster without it, or it is switched off there. The other views work."));
  }
  const rights = error.status === 401 || (error.status === 403 && !token());
  return h("section", { class: "card failure", role: "alert" }, h("h2", null, error.status === 0 ? "No answer" : rights ? "This needs a right that you do not have" : "That did not work"),
    h("p", null, sentence(error.message)), error.problems.length > 0 && h("ul", null, error.problems.map((p) => h("li", null, p.text))),
    rights && h("p", null, h("a", { href: "#", "data-sign": "1" }, "Sign in with a token")));
}
