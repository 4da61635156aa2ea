// The pit: tiles stay in the order of their severity, and none moves while it is touched; the filter is in the address.
// On a wall, without touch and filter, the tiles fill the screen, and are shown in turns where they do not fit.
"use strict";
(() => {
  const HOLD = 3000; // milliseconds after a touch or a move of the pointer over the tiles in which none changes its place
  const TURN = 12000; // milliseconds that a wall shows one page
  const LARGEST = 2.4, SMALLEST = .8; // scales of the tiles on a wall
  const TILE = [168, 104], GAP = 8; // pixels of a tile at scale 1, as console.css has them for .wall; a long text makes its row higher
  const tiles = document.querySelector("[data-tiles]");
  if (!tiles) return;
  const wall = tiles.dataset.wall !== undefined;
  const all = () => [...tiles.children].filter((one) => one.childElementCount > 0); // those that were taken away are empty
  let held = -Infinity, down = false, later = 0;

  // ---- the order: by severity, then as configured

  const before = (one, other) => one.dataset.rank - other.dataset.rank || one.dataset.n - other.dataset.n;
  const arrange = () => {
    clearTimeout(later);
    const here = all();
    if (here.some((one) => one.dataset.rank === "")) return; // the broker is lost: the order stays
    const wait = down ? HOLD : held + HOLD - performance.now();
    const sorted = [...here].sort(before);
    if (sorted.every((one, n) => one === here[n])) return;
    if (wait > 0) { later = setTimeout(arrange, wait); return; }
    const focused = document.activeElement;
    sorted.forEach((one, n) => {
      const there = tiles.children[n];
      if (there !== one) tiles.insertBefore(one, there);
    });
    if (focused && tiles.contains(focused)) focused.focus({ preventScroll: true });
  };
  for (const name of ["pointerdown", "pointermove", "touchstart", "wheel", "keydown"])
    tiles.addEventListener(name, () => { held = performance.now(); }, { passive: true });
  tiles.addEventListener("pointerdown", () => { down = true; });
  for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, () => { down = false; });

  // ---- the filter

  const form = document.querySelector("[data-filter]");
  const tools = document.querySelector("[data-tools]");
  const filter = () => {
    if (!form) return;
    const asked = Object.fromEntries(new FormData(form));
    const words = (asked.q || "").toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0, hidden = 0;
    const narrow = words.length > 0 || asked.area || asked.game || asked.state;
    if (!narrow && !tiles.querySelector(":scope > .tile[hidden]")) return;
    for (const one of all()) {
      const said = one.dataset;
      const text = `${one.textContent} ${said.area}`.toLowerCase();
      const state = { offline: "error" }[said.state] ?? said.state;
      const fits = (!asked.area || said.area === asked.area) && (!asked.game || said.game === asked.game)
        && (!asked.state || state === asked.state || (asked.state === "trouble" && said.rank !== "" && said.rank < 4))
        && words.every((word) => text.includes(word));
      if (one.hidden === fits) one.hidden = !fits;
      shown += fits;
      hidden += !fits && said.rank !== "" && said.rank < 4;
    }
    const output = tools.querySelector("output");
    output.textContent = narrow ? tools.dataset.shown.replace("{n}", shown).replace("{all}", all().length)
      + (hidden ? " · " + tools.dataset.hidden.replace("{n}", hidden) : "") : "";
  };
  const address = () => {
    const asked = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    history.replaceState(null, "", location.pathname + (asked.size ? "?" + asked : ""));
  };
  if (form) {
    form.addEventListener("input", () => { address(); filter(); });
    form.addEventListener("submit", (event) => { event.preventDefault(); address(); filter(); });
  }

  // ---- the wall: the largest scale at which all fit; else pages; tiles that need attention are on each

  let page = 0;
  const fitting = (count) => { // the largest scale at which so many fit, or the smallest and how many fit then
    const width = tiles.clientWidth, height = tiles.clientHeight;
    for (let scale = LARGEST; ; scale -= .05) {
      const columns = Math.max(Math.floor((width + GAP) / (TILE[0] * scale + GAP)), 1);
      const rows = Math.max(Math.floor((height + GAP) / (TILE[1] * scale + GAP)), 1);
      if (columns * rows >= count || scale - .05 < SMALLEST) return [scale, columns * rows];
    }
  };
  const fit = () => {
    if (!wall) return;
    const here = all();
    const calm = here.filter((one) => one.dataset.rank === "" || one.dataset.rank >= 4);
    let [scale, most] = fitting(here.length), pages = 1;
    const show = (page, each) => here.forEach((one) => {
      one.hidden = pages > 1 && calm.includes(one) && Math.floor(calm.indexOf(one) / each) !== page;
    });
    for (;;) { // smaller, or more pages, until the highest page fits
      const each = Math.max(most - (here.length - calm.length), 1);
      pages = most < here.length ? Math.ceil(calm.length / each) : 1;
      tiles.style.setProperty("--scale", scale.toFixed(2));
      const high = [...Array(pages).keys()].some((page) => {
        show(page, each);
        return here.some((one) => one.getBoundingClientRect().bottom > tiles.getBoundingClientRect().bottom + .1);
      });
      if (!high || (each === 1 && scale - .05 < SMALLEST)) {
        page %= pages;
        show(page, each);
        break;
      }
      if (scale - .05 < SMALLEST) most -= 1; else scale -= .05;
    }
    document.querySelector("[data-page]").textContent = pages > 1 ? `${page + 1} / ${pages}` : "";
  };
  if (wall) {
    setInterval(() => { page += 1; fit(); }, TURN);
    window.addEventListener("resize", fit);
  }

  const look = () => { arrange(); filter(); fit(); };
  let due = 0;
  new MutationObserver(() => { // once for all tiles of a message
    if (!due) due = requestAnimationFrame(() => { due = 0; look(); });
  }).observe(tiles, { childList: true });
  look();
})();
