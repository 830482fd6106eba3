// A text on the desk that is nearly one graded before. The server says which texts are alike when it sends a pair; some
// of these are graded only on this page, after that. Loaded before desk.js, whose `desk` it uses.

"use strict";

// "grade:2" and "copy:17:2" give a 2.
const gradeOf = (act) => (/^(grade|copy):/.test(act) ? act.slice(act.lastIndexOf(":") + 1) : null);

// Of the texts that are nearly this one, the likest that is graded by now is shown, with its grade.
function showNear(form) {
  let shown = null;
  for (const near of form.querySelectorAll("[data-near]")) {
    const copy = near.querySelector("[data-key=y]");
    const given = desk.grades.get(Number(near.dataset.ofPair));
    const grade = given === undefined ? gradeOf(copy.value) : given;
    const button = grade && form.querySelector(`.desk-grade[data-key="${grade}"]`);
    near.hidden = !button || shown !== null;
    if (!button) continue;
    copy.value = `copy:${near.dataset.near}:${grade}`;
    copy.dataset.label = `${button.dataset.label}, copied`;
    near.querySelector("[data-near-grade]").replaceChildren(...[...button.childNodes].map((node) => node.cloneNode(true)));
    shown ??= near;
  }
  return shown;
}
