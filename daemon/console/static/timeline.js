// The timeline of a table: the exact time and text of a mark below the strip; arrows lead from mark to mark.
"use strict";
(() => {
  let told = null; // the mark that a touch has shown: the next touch follows its link

  const say = (mark) => {
    const where = mark.closest("[data-day]").querySelector("[data-say]");
    where.textContent = mark.getAttribute("aria-label");
  };
  const marks = (one) => [...one.closest("svg").querySelectorAll("[data-mark]")];

  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest("[data-mark]");
    if (mark) say(mark);
  });
  document.addEventListener("focusin", (event) => {
    const mark = event.target.closest("[data-mark]");
    if (mark) say(mark);
  });
  document.addEventListener("keydown", (event) => {
    const mark = event.target.closest?.("[data-mark]");
    if (!mark) return;
    const all = marks(mark), here = all.indexOf(mark);
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = all[Math.min(Math.max(to, 0), all.length - 1)];
    for (const one of all) one.setAttribute("tabindex", one === next ? "0" : "-1");
    next.focus();
  });
  document.addEventListener("click", (event) => {
    const mark = event.target.closest("[data-mark]");
    if (!mark) { told = null; return; }
    if (event.pointerType !== "touch" || told === mark.id) {
      const to = mark.getAttribute("href");
      if (to.startsWith("#")) document.getElementById(to.slice(1)).open = true;
      return;
    }
    event.preventDefault();
    told = mark.id;
    say(mark);
  });
})();
