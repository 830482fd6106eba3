// The keys: each presses a visible control, so that key and button are one thing. Loaded before desk.js.

"use strict";

const fold = (name) => () => {
  const details = stage.querySelector(`details[data-fold=${name}]`);
  if (details) details.open = !details.open;
};
const press = (selector) => () => stage.querySelector(selector)?.click();
const keys = {
  u: () => desk.back(),
  h: () => byId("highlight").click(),
  r: () => byId("rubric").togglePopover(),
  "?": () => byId("keys").togglePopover(),
  l: press("[data-key=l]"),
  s: press("[data-key=s]"),
  c: press("[data-key=c]"),
  e: press("[data-key=e]"),
  d: press("[data-key=d]"),
  i: fold("narrative"),
  f: fold("facts"),
  g: fold("given"),
  m: fold("markdown"),
  n: press("[data-key=n]"),
  o: press("[data-key=o]"),
};
for (const key of "yavbx") keys[key] = press(`[data-near]:not([hidden]) [data-key=${key}]`);

// A field that closes gives the keys back at once; left alone, the browser would keep them there until the next frame.
function leave(field) {
  field.blur();
  stage.querySelector(".desk-chunk")?.focus({ preventScroll: true });
}

function onKey(event) {
  const field = event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (event.key === "Enter" && event.target.name === "evidence") {
    event.preventDefault();
    if (takeTyped(event.target.form)) {
      event.target.form.querySelector("[data-evidence]").classList.remove("open");
      return leave(event.target);
    }
  }
  if (event.key === "Escape" && field) return leave(field);
  if (field || event.ctrlKey || event.altKey || event.metaKey || event.getModifierState("AltGraph")) return;
  if (event.isComposing || event.repeat) return;
  // Shift alone makes a digit or a question mark on some keyboards; with a letter it is a modifier held. Caps Lock is not.
  if (event.shiftKey && /^\p{L}$/u.test(event.key)) return;
  const panel = document.querySelector("[popover]:popover-open");
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  let action;
  if (panel) {
    // An open panel has the keys to itself: its reasons, and the key that opened it.
    const reason = /^[0-9]$/.test(key) && panel.querySelector(`[data-reason="${key}"]`);
    if (reason) action = () => reason.click();
    else if (panel.id === "keys" && key === "?") action = keys["?"];
    else if (panel.id === "rubric" && key === "r") action = keys.r;
  } else if (/^[0-9]$/.test(key)) action = press(`.desk-grade[data-key="${key}"]`);
  else action = keys[key];
  if (!action) return;
  event.preventDefault();
  action();
}
