// The outbox made visible: what is not saved yet and why, and warnings that a person must see. Lies above the text, so
// that nothing moves. Loaded before desk.js, whose `outbox` and `say` it uses.

"use strict";

const trayBox = document.getElementById("tray");
let leaving = false; // to sign in again: what is unsent is kept, so the page may be left without a question

function notice(css, text) {
  const paragraph = document.createElement("p");
  paragraph.className = css;
  paragraph.textContent = text;
  return paragraph;
}

function warn(text) {
  const line = notice("desk-warning", text);
  line.setAttribute("role", "alert");
  const close = document.createElement("button");
  close.type = "button";
  close.className = "btn btn-sm btn-outline-secondary";
  close.textContent = "Understood";
  close.addEventListener("click", () => line.remove());
  line.append(" ", close);
  trayBox.before(line);
}

let saidState = "";
function paintTray() {
  const unsent = outbox.list();
  document.getElementById("saving").textContent = unsent.length ? `saving ${unsent.length}…` : "";
  const slow = unsent.filter((act) => act.refused || Date.now() - act.chosen > 1500 || outbox.state !== "sending");
  const troubled = outbox.state === "offline" || outbox.state === "signed-out";
  const shown = !trayBox.hidden && unsent.length; // it does not flicker between two tries
  trayBox.hidden = !troubled && !slow.length && !shown;
  const heading = {
    offline: `The server cannot be reached. ${unsent.length ? "What you chose is kept here and sent again by itself." : ""}`,
    "signed-out": "You have been signed out. What you chose is kept here; sign in again to go on.",
  }[outbox.state];
  const parts = [notice("mb-1 fw-semibold", heading || "Not saved yet:")];
  if (outbox.state === "signed-out") {
    const link = document.createElement("a");
    link.href = root.dataset.signInUrl;
    link.className = "btn btn-sm btn-primary";
    link.id = "sign-in-again";
    link.textContent = "Sign in again";
    link.addEventListener("click", () => { leaving = true; });
    parts.push(link);
  }
  const list = document.createElement("ul");
  for (const act of unsent) list.append(trayLine(act));
  parts.push(list);
  trayBox.replaceChildren(...parts);
  const state = troubled ? outbox.state : "";
  if (state !== saidState) say(heading || "The server is back; everything is saved.");
  saidState = state;
}

function trayLine(act) {
  const line = document.createElement("li");
  line.dataset.unsent = act.pair || act.about;
  line.textContent = `${act.label} – ${act.text}`;
  if (act.refused) {
    const why = notice("mb-1 text-danger-emphasis", act.refused);
    const drop = document.createElement("button");
    drop.type = "button";
    drop.className = "btn btn-sm btn-outline-secondary";
    drop.textContent = "Drop it";
    drop.addEventListener("click", () => outbox.remove(act.key));
    line.append(why, drop);
  }
  return line;
}
