// Pages that follow the site: fragments come as server-sent events and replace the earlier ones.
// Old values are shown as old; a page without messages shows a banner after LATE.
"use strict";
(() => {
  const LATE = 4; // seconds, checked every second; a heartbeat comes every two
  const NEWS = 900; // seconds that a restart is shown beside its computer
  const SOON = 300; // seconds before a duty is due
  const PRESS = 1000; // milliseconds: not every browser reports the button that gets the focus
  const root = document.documentElement;
  let offset = 0; // milliseconds our clock is behind the console's
  let heard = performance.now();
  let source = null;
  let left = -Infinity; // when the cursor last left a field
  const shown = new Map(); // by fragment, the HTML that was put last
  const waiting = new Map(); // the newest HTML of those in which the user writes

  // Days and times are the site's, wherever the browser is; the words are the page's.
  const zone = root.dataset.zone, [seconds_, minutes_, hours_, days_] = (root.dataset.ages ?? "").split("|");
  const lazily = (make) => { let made; return (at) => (made ??= make()).format(at); }; // slow to make
  const days = lazily(() => new Intl.DateTimeFormat("en-CA", { timeZone: zone, dateStyle: "short" }));
  const times = lazily(() => new Intl.DateTimeFormat("en-GB", { timeZone: zone, timeStyle: "medium" }));

  const clocks = (where) => {
    const all = where.querySelectorAll("time[data-day]");
    const today = all.length ? days(Date.now() + offset) : "";
    for (const one of all) // a time of another day is shown with it
      if (days(new Date(one.dateTime)) !== today && !one.textContent.startsWith(one.dataset.day))
        one.prepend(`${one.dataset.day} `);
  };

  // On a phone the cells of a row are below each other: each shows the name of its column.
  const columns = (where) => {
    for (const table of where.querySelectorAll("table.stacked")) {
      const heads = [...table.tHead.rows[0].cells].map((one) =>
        [...one.childNodes].filter((part) => part.className !== "sr").map((part) => part.textContent.trim()).filter(Boolean).join(" \u00b7 "));
      for (const cell of table.querySelectorAll(":is(tbody, tfoot) td:not([colspan])"))
        if (heads[cell.cellIndex]) cell.dataset.label = heads[cell.cellIndex];
    }
  };

  const age = (seconds) => {
    const [text, n] = seconds < 100 ? [seconds_, seconds] : seconds < 6000 ? [minutes_, seconds / 60]
      : seconds < 172800 ? [hours_, seconds / 3600] : [days_, seconds / 86400];
    return text.replace("{n}", Math.round(n));
  };

  const ages = () => {
    const now = Date.now() + offset;
    for (const one of document.querySelectorAll("[data-at]")) {
      const seconds = Math.max(0, Math.round((now - Date.parse(one.dataset.at)) / 1000));
      const shown = one.dataset.exact === undefined ? age(seconds) : times(new Date(one.dataset.at));
      if (one.textContent !== shown) one.textContent = shown;
      if (one.dataset.stale) one.classList.toggle("old", seconds > Number(one.dataset.stale));
    }
    for (const one of document.querySelectorAll("[data-left]")) { // a countdown
      const seconds = Math.max(0, Math.ceil((Date.parse(one.dataset.left) - now) / 1000));
      one.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    }
    for (const one of document.querySelectorAll("[data-due]")) {
      const left = Date.parse(one.dataset.due) - now;
      one.classList.toggle("soon", left <= SOON * 1000);
      one.querySelector(".due").hidden = left > 0;
    }
    for (const one of document.querySelectorAll("[data-until]")) // a restart is shown for NEWS
      one.hidden = now - Date.parse(one.dataset.until) > NEWS * 1000;
    for (const one of document.querySelectorAll("[data-wallclock]")) one.textContent = times(now);
    const late = source !== null && performance.now() - heard > LATE * 1000;
    if (late !== root.classList.contains("cut")) {
      root.classList.toggle("cut", late);
      const banner = document.getElementById("cut");
      if (banner) banner.hidden = !late;
    }
    if (late && source.readyState === EventSource.CLOSED) follow();
    for (const [id, html] of [...waiting]) put(id, html);
    const banner = document.getElementById("waits");
    if (banner) banner.hidden = waiting.size === 0;
    renew();
  };

  // A form is not replaced while the user is about to press, or has typed into the focused field. The answer to a refused
  // one stays, with what was typed, until it is sent again or left.
  const busy = (old) => {
    if (old.querySelector("[data-refused]")) return true;
    if (!old.querySelector("form")) return false;
    if (performance.now() - left < PRESS) return true;
    const here = document.activeElement;
    return old.contains(here) && !here.matches("summary, a") && (!here.matches("input, textarea") || here.value !== "");
  };

  // After an update of the console, or a change of a part with data-reload, the page is loaded again, but not while the user types.
  let outdated = false;
  const renew = () => {
    const typed = [...document.querySelectorAll("main :is(input, textarea, select)")].some((one) => one.matches(":focus")
      || (one.matches("input, textarea") && (one.value !== one.defaultValue || one.checked !== one.defaultChecked)));
    if (outdated && !typed && !document.querySelector("[data-refused], [data-busy]") && performance.now() - left > PRESS) location.reload();
  };

  // What overflows is shown up to its newest entry.
  const newest = (where) => {
    for (const one of where.querySelectorAll("[data-end] [data-newest]")) {
      const box = one.closest("[data-end]");
      box.scrollLeft += one.getBoundingClientRect().right - box.getBoundingClientRect().right + 3;
    }
  };

  const put = (id, html) => {
    const known = shown.get(id);
    waiting.delete(id);
    for (const old of document.querySelectorAll(`[data-live="${CSS.escape(id)}"]`)) {
      if (busy(old)) {
        if (html !== known) waiting.set(id, html);
        continue;
      }
      shown.set(id, html);
      outdated ||= old.dataset.reload !== undefined;
      const made = document.createElement("template");
      made.innerHTML = html;
      const next = made.content.firstElementChild;
      if (!next) { old.replaceChildren(); old.hidden = true; continue; } // it is gone; it may come back
      for (const open of old.querySelectorAll("details[open][id]")) {
        const same = next.querySelector(`#${CSS.escape(open.id)}`);
        if (same) same.open = true;
      }
      for (const field of old.querySelectorAll("input[id], textarea[id], select[id]")) { // what was written and not sent
        const written = field.value !== field.defaultValue || field.dataset.kept !== undefined; // of a choice: always
        const same = written ? next.querySelector(`#${CSS.escape(field.id)}`) : null;
        if (same) same.value = field.value;
      }
      clocks(made.content);
      columns(made.content);
      const scrolled = [...old.querySelectorAll(".wide")].map((one) => [one.scrollLeft, one.scrollTop]);
      const held = old.contains(document.activeElement) ? document.activeElement.id : "";
      const before = left;
      old.replaceWith(next);
      left = before; // the user did not leave the field
      next.querySelectorAll(".wide").forEach((one, n) => one.scrollTo(...(scrolled[n] ?? [0, 0])));
      if (held) document.getElementById(held)?.focus({ preventScroll: true });
      newest(next);
      if (id === "counts") count();
    }
  };

  // The number of unacknowledged alerts is in the title: the page may be hidden by another tab.
  const title = document.title;
  const count = () => {
    const n = Number(document.querySelector("[data-count]")?.dataset.count ?? 0);
    document.title = n ? `(${n}) ${title}` : title;
    ring();
  };

  // A short sound for a fault that is new since the last count; off until a person switches it on in this browser.
  const button = document.querySelector("[data-sound]");
  let audio = null, faults = null; // browsers allow sound only after a press on the page
  const wanted = () => { try { return localStorage.getItem("sound") === "on"; } catch { return false; } };
  const beep = () => {
    if (audio?.state !== "running") return;
    const tone = audio.createOscillator(), volume = audio.createGain(), at = audio.currentTime;
    tone.frequency.value = 880;
    volume.gain.setValueAtTime(.2, at);
    volume.gain.exponentialRampToValueAtTime(.001, at + .35);
    tone.connect(volume).connect(audio.destination);
    tone.start(at);
    tone.stop(at + .35);
    root.dataset.beeps = Number(root.dataset.beeps ?? 0) + 1;
  };
  const ring = () => {
    const here = new Set((document.querySelector("[data-faults]")?.dataset.faults ?? "").split(" ").filter(Boolean));
    if (faults && wanted() && [...here].some((one) => !faults.has(one))) beep();
    faults = here;
  };
  const sound = () => {
    if (!button) return;
    const on = wanted();
    button.setAttribute("aria-pressed", on);
    button.textContent = !on ? button.dataset.off : audio?.state === "running" ? button.dataset.on : button.dataset.wait;
  };
  const unlock = () => {
    if (!wanted()) return;
    audio ??= new AudioContext();
    audio.resume().then(sound, () => {});
  };
  for (const name of ["pointerdown", "keydown"]) document.addEventListener(name, unlock);
  button?.addEventListener("click", () => {
    try { localStorage.setItem("sound", wanted() ? "off" : "on"); } catch { return; } // storage is forbidden here
    unlock();
    sound();
    if (wanted()) audio.resume().then(beep, () => {});
  });

  const follow = () => {
    const names = new Set();
    for (const one of document.querySelectorAll("[data-live]")) // nested ones come with the outer one
      if (!one.parentElement.closest("[data-live]")) names.add(one.dataset.live + (source ? "" : "~" + (one.dataset.drawn ?? "")));
    if (names.size === 0) return;
    if (source) source.close();
    source = new EventSource("/live?" + [...names].map((name) => "f=" + encodeURIComponent(name)).join("&"));
    source.onmessage = (message) => {
      const said = JSON.parse(message.data);
      heard = performance.now();
      offset = Date.parse(said.now) - Date.now();
      outdated ||= said.version !== root.dataset.version;
      for (const [id, html] of Object.entries(said.put)) put(id, html);
      ages();
    };
    source.addEventListener("over", () => { source.close(); keep(true); location.reload(); });
  };

  // A session may end while a person writes. The text is kept in this tab until the same user opens the form again: while a
  // form is sent, on the pages of the login, and where the console ended the page. Passwords and codes are not kept.
  const TYPED = "typed", texts = "textarea, input:not([type]), input[type=text], input[type=number]";
  const keep = (over, form = null) => {
    const fields = [];
    for (const one of document.querySelectorAll("form[method=post]")) {
      const action = one.getAttribute("action");
      if ((form && one !== form) || action.startsWith("/login")) continue;
      for (const field of one.querySelectorAll(texts))
        if (field.value !== field.defaultValue && field.name !== "code")
          fields.push({ action, id: field.id, name: field.name, value: field.value });
    }
    try {
      if (fields.length) sessionStorage.setItem(TYPED, JSON.stringify({ user: root.dataset.user, over, fields }));
    } catch { /* no room, or storage is forbidden here */ }
  };
  const restore = () => {
    let kept = null;
    try { kept = JSON.parse(sessionStorage.getItem(TYPED)); } catch { return; }
    if (!kept) return;
    if (!root.dataset.user) { // a page of the login
      sessionStorage.setItem(TYPED, JSON.stringify({ ...kept, over: true }));
      return;
    }
    sessionStorage.removeItem(TYPED);
    if (!kept.over || kept.user !== root.dataset.user) return;
    for (const { action, id, name, value } of kept.fields) {
      const field = document.querySelector(id ? `#${CSS.escape(id)}` : `form[action="${CSS.escape(action)}"] [name="${CSS.escape(name)}"]`);
      if (!field) continue;
      field.value = value;
      for (let fold = field.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
      const banner = document.getElementById("kept");
      if (banner) banner.hidden = false;
    }
  };

  // Grave actions need a confirmation.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const sure = event.submitter?.dataset.sure ?? form.dataset.sure;
    if (sure && !window.confirm(sure)) { event.preventDefault(); return; }
    if (form.dataset.back !== undefined) form.elements.to.value = location.pathname + location.search;
    if (form.dataset.once !== undefined) {
      if (form.dataset.sent) { event.preventDefault(); return; }
      form.dataset.sent = "1";
    }
    keep(false, form);
  });
  document.addEventListener("focusout", (event) => {
    if (event.target.matches("input, textarea")) { left = performance.now(); setTimeout(ages, PRESS); }
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  });
  document.addEventListener("click", (event) => { // a touch screen shows no title
    if (event.target.closest("[data-print]")) window.print();
    const one = event.target.closest("time[data-at]");
    if (one) { one.toggleAttribute("data-exact"); ages(); }
    for (const open of document.querySelectorAll("details.me[open], .edges > details[open]"))
      if (!open.contains(event.target)) open.open = false;
  });
  window.addEventListener("offline", () => { heard = -Infinity; ages(); });
  window.addEventListener("online", follow);
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  const begin = () => {
    restore();
    document.querySelector("body > header nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
    clocks(document);
    columns(document);
    count();
    sound();
    follow();
    ages();
    setInterval(ages, 1000);
    newest(document);
  };
  if (document.hidden) begin(); // nothing is painted there
  else requestAnimationFrame(() => setTimeout(begin)); // after the first paint
})();
