// Keys of the dealer: one request a key, sent again with the same id until it is answered, and the state of each.
"use strict";
(() => {
  const LATE = 5, TRY = 3000, PAUSE = 700, PATIENCE = 10000, TAP = 600, SOON = 300000, NEWS = 15000;
  const place = document.querySelector("[data-dealer]");
  if (!place) return;
  const find = (name) => place.querySelector(`[data-${name}]`);
  const pending = new Map(); // id of a press: where its state is shown
  const unanswered = new Map(); // form: its request that got no answer
  const queues = new Map(); // form: its presses that are not answered yet
  const hands = new Map(); // the hands that are being laid
  const AMOUNTS = new Set(["ante", "stack", "bet", "raise", "blind_raise", "bank", "bid", "bid_half", "banco_with_table"]), ONE_SUM = new Set(["ante", "stack"]);
  const tray = place.querySelector("[data-amount] input"), decimals = Number(place.dataset.decimals);
  let betsOff = true, shownHands = [], missing = [], drawnNow = place.querySelector("[data-now]").innerHTML;
  let heard = performance.now(), source = null, troubles = "";

  const fresh = () => [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
  const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  const show = (said, text, state) => {
    said.textContent = text;
    said.className = `said ${state}`;
    said.dataset.since = String(performance.now());
  };

  const time = (one) => { // as the console writes it, in the zone of the site
    const made = document.createElement("time");
    made.dateTime = one.at;
    made.textContent = one.time;
    return made;
  };
  // The attributes, not `form.action`: that is the field of that name, where the form has one.
  const address = (form, key) => key?.getAttribute("formaction") ?? form.getAttribute("action");
  const pressed = (form, key) => {
    const body = new URLSearchParams(new FormData(form, key));
    if (AMOUNTS.has(body.get("action")) && tray) {
      body.set("sum", tray.value);
      if (!ONE_SUM.has(body.get("action"))) tray.value = ""; // the next bet has its own sum
    }
    if (key?.dataset.amount) body.set("amount", key.dataset.amount);
    body.delete("id");
    return { to: address(form, key), body };
  };

  const send = async (to, body) => {
    const until = performance.now() + PATIENCE;
    for (;;) {
      try {
        const answer = await fetch(to, { method: "POST", body, headers: { accept: "application/json" },
          signal: AbortSignal.timeout(TRY), redirect: "manual" });
        if (answer.type === "opaqueredirect") { location.reload(); return null; } // to the login
        const said = await answer.json();
        if (answer.ok || answer.status === 400 || performance.now() > until) return said;
      } catch (error) {
        if (performance.now() > until) return null;
      }
      await wait(PAUSE);
    }
  };

  place.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.key === undefined) return;
    event.preventDefault();
    const one = pressed(form, event.submitter), says = `${one.to}?${one.body}`;
    const queue = queues.get(form) ?? [];
    if (queue.at(-1)?.says === says) return; // a second tap is the same key
    if (queue.length && form.dataset.many === undefined) return;
    queues.set(form, [...queue, { ...one, says }]);
    if (!queue.length) work(form);
  });

  const work = async (form) => {
    form.dataset.busy = "1";
    while (queues.get(form)?.length) {
      const [{ to, body, says }] = queues.get(form);
      if ((unanswered.get(form) ?? says) !== says) form.elements.id.value = fresh(); // changed fields: another press
      unanswered.delete(form);
      const said = form.querySelector("[data-said]"), id = form.elements.id.value;
      body.set("id", id);
      show(said, place.dataset.trying, "");
      const answer = await send(to, body);
      if (answer === null) { // the id stays: pressed again it is the same press
        show(said, place.dataset.gaveUp, "wrong");
        unanswered.set(form, says);
      } else if (answer.wrong) show(said, answer.wrong, "wrong");
      else {
        show(said, answer.text, answer.state);
        if (answer.state === "here") pending.set(id, said);
        if (pending.size > 50) pending.delete(pending.keys().next().value);
        empty(form);
        const details = form.closest("details.sure");
        if (details && answer.state !== "again") details.open = false;
        await wait(TAP);
        form.elements.id.value = fresh();
      }
      queues.set(form, queues.get(form).slice(1));
    }
    queues.delete(form);
    delete form.dataset.busy;
  };

  // The seat stays chosen: its next bet needs one key less.
  const empty = (form) => {
    const kept = [...form.querySelectorAll("[data-keep] input:checked")];
    form.reset();
    for (const one of kept) one.checked = true;
    const lay = form.querySelector("[data-lay]");
    if (lay) drawHands(lay, true);
  };

  place.addEventListener("click", (event) => {
    if (event.target.closest("summary[aria-disabled]")) event.preventDefault(); // its reason is shown beside it
    const key = event.target.closest("[data-chip], [data-close], [data-way], [data-take-back], [data-hand]");
    if (!key) return;
    if (key.dataset.chip !== undefined) {
      const sum = key.closest("[data-tray]").querySelector("input");
      const lies = Math.round(Number(sum.value.replace(",", ".") || 0) * 10 ** decimals);
      sum.value = key.dataset.chip ? ((lies + Number(key.dataset.chip)) / 10 ** decimals).toFixed(decimals) : "";
    } else if (key.dataset.close !== undefined) key.closest("details").open = false;
    else if (key.dataset.way !== undefined) {
      const fold = document.getElementById(`key-${key.dataset.way}`);
      if (!fold) return;
      event.preventDefault();
      if (fold.matches("details")) fold.open = true;
      fold.scrollIntoView({ block: "center" });
      fold.querySelector("summary, button:enabled")?.focus({ preventScroll: true });
    } else {
      const lay = key.closest("[data-lay]");
      if (key.dataset.hand !== undefined) lay.dataset.on = key.dataset.hand;
      else hands.get(lay).find((one) => one.name === lay.dataset.on)?.cards.pop();
      drawHands(lay);
    }
  });

  // Hands that are laid card by card: a hand, a rank, a suit.
  const drawHands = (lay, anew = false) => {
    if (anew || !hands.has(lay)) {
      const named = lay.dataset.lay ? shownHands.filter(([name]) => missing.includes(name)) : shownHands;
      hands.set(lay, named.map(([name, text, cards]) => ({ name, text, cards: [...cards] })));
      lay.dataset.on = named[0]?.[0] ?? "";
    }
    const text = lay.closest("form").elements.hands, laid = hands.get(lay);
    lay.hidden = !laid.length;
    lay.querySelector("[data-hands]").replaceChildren(...laid.map((one) => {
      const item = document.createElement("li"), key = document.createElement("button");
      key.type = "button";
      key.dataset.hand = one.name;
      key.setAttribute("aria-pressed", String(one.name === lay.dataset.on));
      key.textContent = `${one.text}: ${one.cards.join(" ") || "\u2013"}`;
      item.append(key);
      return item;
    }));
    text.value = laid.filter((one) => one.cards.length).map((one) => `${one.name} ${one.cards.join(" ")}`).join("\n");
  };
  place.addEventListener("change", (event) => {
    const lay = event.target.closest("[data-lay]");
    if (!lay) return;
    const rank = lay.querySelector("[name=lay_rank]:checked"), suit = lay.querySelector("[name=lay_suit]:checked");
    if (!rank || !suit) return;
    hands.get(lay).find((one) => one.name === lay.dataset.on)?.cards.push(rank.value + suit.value);
    rank.checked = suit.checked = false;
    drawHands(lay);
  });
  place.addEventListener("toggle", (event) => {
    const lay = event.target.open && event.target.querySelector?.("[data-lay]");
    if (lay) drawHands(lay, true);
  }, true);

  // The enabled keys, and the cards or chips at each seat.
  const put = (one, off, why) => {
    if (one.disabled !== off) one.disabled = off;
    if (one.title !== why) one.title = why;
  };
  const live = (now) => {
    for (const one of place.querySelectorAll("[data-slot]")) {
      put(one, Boolean(now.keys[one.dataset.slot]), now.keys[one.dataset.slot] ?? "");
      one.toggleAttribute("data-waited", one.dataset.slot === now.due);
    }
    for (const one of place.querySelectorAll("[data-fold]")) {
      const why = now.keys[one.dataset.fold] ?? "";
      one.ariaDisabled = why ? "true" : null;
      if (one.title !== why) one.title = why;
    }
    for (const one of place.querySelectorAll("[data-why]")) {
      const why = now.keys[one.dataset.why] ?? "";
      one.hidden = !why;
      if (one.textContent !== why) one.textContent = why;
    }
    for (const row of place.querySelectorAll("[data-row]")) {
      const seat = row.dataset.row, may = new Set([...(now.actions[seat] ?? []), ...(now.actions[0] ?? [])]);
      const lies = now.rows[seat] ?? { text: "", hand: 1 };
      const taken = now.seats.includes(Number(seat)) || lies.text !== "";
      row.classList.toggle("due", now.turn ? now.turn === Number(seat) : Boolean(now.actions[seat]));
      row.classList.toggle("taken", taken);
      row.hidden = !taken && !may.size && (now.known || Object.keys(now.rows).length > 0); // nobody plays there
      row.querySelector("[data-cards]").textContent = lies.text + (lies.hand > 1 ? ` (${lies.hand})` : "");
      row.elements.hand.value = String(lies.hand ?? 1);
      const liveOnly = row.closest("[data-live-only]") !== null; // a game with many actions shows the possible ones
      for (const key of row.querySelectorAll("[data-act]")) key.hidden = liveOnly && !may.has(key.value);
      const why = now.actions[seat] ? now.not_allowed : now.no_decision;
      for (const key of row.querySelectorAll("[data-act]")) put(key, !may.has(key.value), may.has(key.value) ? "" : why);
      const insure = row.querySelector('[data-act][value="insurance"]');
      if (insure) {
        insure.dataset.says ??= insure.textContent;
        insure.textContent = lies.insurance_text ?? insure.dataset.says;
        insure.dataset.amount = lies.insurance ?? "";
      }
    }
    for (const key of place.querySelectorAll("[data-seat]")) {
      const taken = now.seats.includes(Number(key.value));
      key.setAttribute("aria-pressed", String(taken));
      if (key.dataset.seat === "seat_opened" && now.known) put(key, taken, "");
      if (key.dataset.seat === "seat_closed" && now.known) put(key, !taken, "");
    }
    const asked = new Set(Object.values(now.actions).flat());
    for (const one of place.querySelectorAll("div[data-amount]")) one.hidden = asked.isDisjointFrom?.(AMOUNTS) ?? false;
    shownHands = now.hands;
    if (String(missing) !== String(now.missing)) { // other hands are missing now
      missing = now.missing;
      for (const lay of place.querySelectorAll("[data-lay=missing]")) drawHands(lay, true);
    }
    const bets = place.querySelector("[data-betting]"), off = Boolean(now.keys.bet && now.keys.bet_back);
    if (bets && off && !betsOff) bets.open = false;
    betsOff = off;
    for (const one of place.querySelectorAll(".said.edge")) { // a press that the edge has is shown for a while
      if (performance.now() - Number(one.dataset.since) > NEWS) show(one, "", "");
    }
  };

  const follow = () => {
    if (source) source.close();
    source = new EventSource(place.dataset.dealer);
    source.addEventListener("over", () => { source.close(); location.reload(); });
    source.onmessage = (message) => {
      heard = performance.now();
      const now = JSON.parse(message.data);
      find("away").hidden = now.edge;
      find("there").hidden = !now.edge;
      find("troubles").hidden = !now.troubles.length;
      if (String(now.troubles) !== troubles) {
        troubles = String(now.troubles);
        find("troubles").replaceChildren(...now.troubles.map((text) => {
          const line = document.createElement("p"), strong = document.createElement("strong");
          strong.textContent = text;
          line.append(strong);
          return line;
        }));
      }
      find("phase").textContent = now.phase;
      find("next").textContent = now.next;
      find("next-line").hidden = !now.next;
      find("way-on").hidden = !now.way;
      find("way-on").dataset.way = now.way;
      find("refused").hidden = !now.refusals.length;
      find("refusals").replaceChildren(...now.refusals.map((text) => {
        const one = document.createElement("li");
        one.textContent = text;
        return one;
      }));
      if (now.now !== drawnNow) {
        drawnNow = now.now;
        find("now").innerHTML = now.now; // rendered and escaped by the console
      }
      live(now);
      find("waiting").textContent = now.waiting;
      find("duties").replaceChildren(...now.duties.map((one) => {
        const line = document.createElement("li"), due = document.createElement("strong");
        line.dataset.due = one.at;
        due.className = "due";
        due.textContent = find("duties").dataset.dueNow;
        line.append(`${one.name} `, time(one), " ", due);
        return line;
      }));
      if (now.last.length) {
        find("last").replaceChildren(...now.last.map((one) => {
          const row = document.createElement("tr");
          row.className = one.state;
          for (const text of [time(one), `${one.key} ${one.detail}`, one.text]) {
            const cell = document.createElement("td");
            cell.append(text);
            row.append(cell);
          }
          row.firstChild.className = "num";
          return row;
        }));
      }
      for (const one of now.last) {
        if (pending.has(one.id) && one.state !== "here") {
          show(pending.get(one.id), one.text, one.state);
          pending.delete(one.id);
        }
        for (const form of place.querySelectorAll("form[data-key]")) { // the unanswered press was stored
          if (!form.dataset.busy && form.elements.id.value === one.id) {
            show(form.querySelector("[data-said]"), one.text, one.state);
            form.elements.id.value = fresh();
          }
        }
      }
      look();
    };
  };
  const look = () => {
    for (const one of place.querySelectorAll("[data-due]")) {
      const left = Date.parse(one.dataset.due) - Date.now();
      one.classList.toggle("soon", left <= SOON);
      one.querySelector(".due").hidden = left > 0;
    }
    const late = performance.now() - heard > LATE * 1000;
    find("cut").hidden = !late;
    if (late && source.readyState === EventSource.CLOSED) follow();
  };
  const row = place.querySelector(".tables"), chosen = row?.querySelector("[aria-current]");
  if (chosen) { // in sight at each width, also after the screen was turned
    new ResizeObserver(() => {
      row.scrollLeft = chosen.offsetLeft - row.offsetLeft - (row.clientWidth - chosen.offsetWidth) / 2;
    }).observe(row);
  }
  follow();
  setInterval(look, 1000);
})();
