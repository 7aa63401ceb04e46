// One tooltip for everything that carries a data-tip, for the pointer and the keyboard.

// tips lets an element show the tip of what is pointed at or has the focus.
export function tips(tip) {
  const at = (event) => {
    const target = event.target.closest?.("[data-tip]");
    if (!target) {
      tip.hidden = true;
      return;
    }
    tip.textContent = target.getAttribute("data-tip");
    tip.hidden = false;
    const box = target.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const x = event.clientX ?? box.left + Math.min(box.width, 200) / 2;
    const y = event.clientX === undefined ? box.bottom : event.clientY + 12;
    tip.style.left = Math.max(4, Math.min(x - own.width / 2, innerWidth - own.width - 4)) + "px";
    tip.style.top = (y + own.height + 12 > innerHeight ? y - own.height - 26 : y + 6) + "px";
  };
  document.addEventListener("pointermove", at);
  document.addEventListener("focusin", (event) => { if (event.target.matches?.(":focus-visible")) at(event); });
  document.addEventListener("focusout", () => { tip.hidden = true; });
  document.addEventListener("scroll", () => { tip.hidden = true; }, true);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
}
