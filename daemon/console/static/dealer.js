// Keys of the dealer: one request a key, sent again with the same id until it is answered, and how each of them stands.
"use strict";
(() => {
  const LATE = 5, TRY = 3000, PAUSE = 700, PATIENCE = 10000, TAP = 600, SOON = 300000;
  const place = document.querySelector("[data-dealer]");
  if (!place) return;
  const find = (name) => place.querySelector(`[data-${name}]`);
  const pending = new Map(); // id of a press: where its state is shown
  const unanswered = new Map(); // form: what it said when nobody answered
  let heard = performance.now(), source = null;

  const fresh = () => [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
  const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  const show = (said, text, state) => { said.textContent = text; said.className = `said ${state}`; };

  const draw = (one, instant) => {
    const at = new Date(instant), two = (n) => String(n).padStart(2, "0");
    one.dateTime = instant;
    one.textContent = (at.toDateString() === new Date().toDateString() ? "" : `${two(at.getMonth() + 1)}-${two(at.getDate())} `)
      + `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
    return one;
  };
  const minute = (one, instant) => {
    one.dateTime = instant;
    one.textContent = new Date(instant).toTimeString().slice(0, 5);
    return one;
  };
  const values = (form) => {
    const said = new URLSearchParams(new FormData(form));
    said.delete("id");
    return said.toString();
  };

  const send = async (form) => {
    const until = performance.now() + PATIENCE;
    const address = form.getAttribute("action"); // `form.action` is the field of that name, where the form has one
    const body = new URLSearchParams(new FormData(form));
    for (;;) {
      try {
        const answer = await fetch(address, { method: "POST", body, headers: { accept: "application/json" },
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

  place.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.dataset.key === undefined) return;
    event.preventDefault();
    if (form.dataset.busy) return; // a second tap is the same key
    form.dataset.busy = "1";
    const says = values(form);
    if ((unanswered.get(form) ?? says) !== says) form.elements.id.value = fresh(); // something else: another press
    unanswered.delete(form);
    const said = form.querySelector("[data-said]"), id = form.elements.id.value;
    show(said, place.dataset.trying, "");
    const answer = await send(form);
    if (answer === null) { // the id stays: pressed again it is the same press
      show(said, place.dataset.gaveUp, "wrong");
      unanswered.set(form, says);
    } else if (answer.wrong) show(said, answer.wrong, "wrong");
    else {
      show(said, answer.text, answer.state);
      if (answer.state === "here") pending.set(id, said);
      if (pending.size > 50) pending.delete(pending.keys().next().value);
      form.reset();
      const details = form.closest("details");
      if (details && answer.state !== "again") details.open = false;
      await wait(TAP);
      form.elements.id.value = fresh();
    }
    delete form.dataset.busy;
  });

  const follow = () => {
    if (source) source.close();
    source = new EventSource(place.dataset.dealer);
    source.addEventListener("over", () => { source.close(); location.reload(); });
    source.onmessage = (message) => {
      heard = performance.now();
      const now = JSON.parse(message.data);
      find("away").hidden = now.edge;
      find("there").hidden = !now.edge;
      find("phase").textContent = now.phase;
      find("refused").hidden = !now.refusals.length;
      find("refusals").replaceChildren(...now.refusals.map((text) => {
        const one = document.createElement("li");
        one.textContent = text;
        return one;
      }));
      find("doubt").hidden = !now.why;
      find("why").textContent = now.why;
      find("remedy").textContent = now.remedy;
      find("waiting").textContent = now.waiting;
      find("duties").replaceChildren(...now.duties.map((one) => {
        const line = document.createElement("li"), due = document.createElement("strong");
        line.dataset.due = one.at;
        due.className = "due";
        due.textContent = find("duties").dataset.dueNow;
        line.append(`${one.name} `, minute(document.createElement("time"), one.at), " ", due);
        return line;
      }));
      if (now.last.length) {
        find("last").replaceChildren(...now.last.map((one) => {
          const row = document.createElement("tr");
          row.className = one.state;
          for (const text of [draw(document.createElement("time"), one.at), `${one.key} ${one.detail}`, one.text]) {
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
        for (const form of place.querySelectorAll("form[data-key]")) { // it was kept after all
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
  for (const one of place.querySelectorAll("[data-clock]")) draw(one, one.dateTime);
  for (const one of place.querySelectorAll("[data-minute]")) minute(one, one.dateTime);
  follow();
  setInterval(look, 1000);
})();
