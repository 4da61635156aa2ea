// A trace as it passes. Rows are made of text alone; filtered rows are hidden, the oldest are removed.
"use strict";
(() => {
  const MOST = 2000, LATE = 5;
  const place = document.querySelector("[data-trace]");
  if (!place) return;
  const words = place.dataset;
  const body = place.querySelector("[data-lines]"), box = place.querySelector(".trace");
  const pause = place.querySelector("[data-pause]"), said = place.querySelector("[data-said]");
  const filter = place.querySelector("[data-filter]"), way = place.querySelector("[data-way]");
  let paused = false, held = [], heldOut = 0, leftOut = 0, heard = performance.now(), source = null;

  const zone = document.documentElement.dataset.zone; // times are the site's, wherever the browser is
  const times = new Intl.DateTimeFormat("en-GB", { timeZone: zone, timeStyle: "medium" });
  const local = (text) => {
    const at = new Date(text);
    return `${times.format(at)}.${String(at.getMilliseconds()).padStart(3, "0")}`;
  };
  const letters = (hex) => (hex.match(/../g) ?? []).map((two) => {
    const code = parseInt(two, 16);
    return code > 31 && code < 127 ? String.fromCharCode(code) : "·";
  }).join("");
  const heads = [...place.querySelectorAll("thead th")].map((one) => one.textContent); // on a phone each cell shows its own
  const cell = (row, text, head) => {
    const made = document.createElement("td");
    made.textContent = text;
    if (head) made.dataset.label = head;
    row.append(made);
  };
  const shows = (row) => (!way.value || row.dataset.way === way.value || row.dataset.way === "")
    && (!filter.value || row.dataset.text.includes(filter.value.toLowerCase()));
  const row = (of, texts) => {
    const made = document.createElement("tr");
    made.dataset.way = of;
    made.dataset.text = texts.join(" ").toLowerCase();
    texts.forEach((text, n) => cell(made, text, of && heads[n]));
    made.lastElementChild.lang = "en"; // the words of the protocols
    made.hidden = !shows(made);
    return made;
  };
  const put = (lines) => {
    const low = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    const made = document.createDocumentFragment();
    for (const one of lines) {
      if (one.missing) {
        const gap = row("", ["", "", words.missing.replace("{n}", one.missing), "", ""]);
        gap.className = "gap";
        made.append(gap);
      }
      const spaced = one.hex.replace(/(..)(?=.)/g, "$1 ");
      made.append(row(one.way, [local(one.at), one.way === "in" ? words.in : words.out, spaced, letters(one.hex), one.said.join("\n")]));
    }
    body.append(made);
    while (body.childElementCount > MOST) body.firstElementChild.remove();
    if (low) box.scrollTop = box.scrollHeight;
  };
  const tell = () => {
    const late = performance.now() - heard > LATE * 1000;
    const parts = [];
    if (late) parts.push(words.lost);
    if (leftOut + heldOut) parts.push(words.leftOut.replace("{n}", leftOut + heldOut));
    const text = parts.join(" · ");
    if (said.textContent !== text) said.textContent = text;
    said.className = late ? "alert" : "soft";
    if (late && source.readyState === EventSource.CLOSED) follow();
  };
  const follow = () => {
    if (source) source.close();
    source = new EventSource(words.trace);
    source.addEventListener("over", () => { source.close(); location.reload(); });
    source.onopen = () => { body.replaceChildren(); held = []; heldOut = 0; };
    source.onmessage = (message) => {
      heard = performance.now();
      const news = JSON.parse(message.data);
      leftOut = news.left_out;
      if (paused) {
        held.push(...news.lines);
        if (held.length > MOST) { heldOut += held.length - MOST; held.splice(0, held.length - MOST); }
      } else put(news.lines);
      tell();
    };
  };
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    if (!paused) { put(held); held = []; }
  });
  const sift = () => { for (const one of body.children) one.hidden = !shows(one); };
  filter.addEventListener("input", sift);
  way.addEventListener("change", sift);
  follow();
  setInterval(tell, 1000);
})();
