// One tooltip for everything that carries a data-tip, for the pointer and the keyboard.

// tips lets an element show the tip of what is pointed at or has the focus.
export function tips(tip) {
  let of = null; // whose tip is shown
  const hide = () => { tip.hidden = true; of = null; };
  const at = (event) => {
    of = event.target.closest?.("[data-tip]");
    if (!of) return hide();
    tip.textContent = of.getAttribute("data-tip");
    tip.hidden = false;
    const box = of.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const x = event.clientX ?? box.left + Math.min(box.width, 200) / 2;
    const y = event.clientX === undefined ? box.bottom : event.clientY + 12;
    tip.style.left = Math.max(4, Math.min(x - own.width / 2, innerWidth - own.width - 4)) + "px";
    tip.style.top = (y + own.height + 12 > innerHeight ? y - own.height - 26 : y + 6) + "px";
  };
  document.addEventListener("pointermove", at);
  document.addEventListener("focusin", (event) => { if (event.target.matches?.(":focus-visible")) at(event); });
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, true);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  addEventListener("hashchange", hide);
  new MutationObserver(() => { // it is drawn anew, or gone
    const words = of?.isConnected ? of.getAttribute("data-tip") : null;
    if (of && words === null) hide();
    else if (of && tip.textContent !== words) tip.textContent = words;
  }).observe(document.getElementById("main"), { subtree: true, childList: true, attributes: true, attributeFilter: ["data-tip"] });
}
