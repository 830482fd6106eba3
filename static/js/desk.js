// The desk. Without this file each button is a plain form that reloads the page; with it the next pair is on screen in
// the same frame as the key, and saving goes on behind it.
//
//   outbox   acts that the server has not confirmed yet (desk_outbox.js)
//   clock    active seconds on the pair (desk_clock.js)
//   near     a text that is nearly one graded before (desk_near.js), evidence (desk_evidence.js)
//   desk     what is on screen, what lies ready, what was shown before
//   tray     the outbox made visible, and warnings (desk_tray.js)
//   keys     one table of keys, each pressing a visible control (desk_keys.js)

"use strict";

const root = document.getElementById("desk");
const stage = document.getElementById("stage");
const live = document.getElementById("live");
const byId = (id) => document.getElementById(id);

// As the server writes numbers: 1,398.
const outOf = (done, all) => `${done.toLocaleString("en")} of ${all.toLocaleString("en")}`;

const say = (text) => {
  live.textContent = text;
};

// ------------------------------------------------------------------------------------------------------- the desk

const desk = {
  current: null, // { pair, question, form }
  ready: [], // the same, next first
  shownAt: 0,
  shown: [], // the same, what u goes back to
  judged: new Set(), // pairs judged on this page, so that an answer under way does not bring them again
  grades: new Map(), // pair -> the grade given on this page, null where it was skipped or cannot be judged
  given: new Map(), // question -> <li> elements, the latest first
  places: new Map(), // question -> { done, total }
  batch: null,
  countedAt: 0,
  end: null,
  asking: false,

  start() {
    const form = stage.querySelector("form.desk-pair");
    for (const act of outbox.list()) if (act.pair && act.act !== "later") this.grades.set(act.pair, gradeOf(act.act));
    if (form) {
      this.current = entryOf(form);
      this.given.set(this.current.question, [...form.querySelectorAll("[data-given] > li")]);
      this.places.set(this.current.question, { done: byId("question-bar").value, total: byId("question-bar").max });
      const pending = outbox.of(this.current.pair);
      if (pending && !new URLSearchParams(location.search).has("pair")) {
        this.advance(); // graded before the page was loaded anew; the grade is on its way
      } else {
        if (pending) markChosen(form, pending.act);
        settle(this.current, false);
      }
    }
    if (form || outbox.list().length) this.fetchNext();
    outbox.flush();
  },

  // The act of a button: kept first, then the next pair; sending goes on behind.
  act(form, button) {
    // The second half of a double click or double press must not judge a pair that nobody has read.
    if (performance.now() - this.shownAt < 300) return;
    if (!takeTyped(form)) return openEvidence(form);
    clock.tick();
    const fields = [...new FormData(form, button)].filter(([name]) => name !== "csrfmiddlewaretoken" && name !== "key");
    fields.push(["seconds", clock.seconds.toFixed(1)]);
    const entry = this.current;
    const act = { ...actOf(form, button), url: form.action, pair: entry.pair, question: entry.question, act: button.value, fields };
    storage.remove(draftKey(entry.pair));
    if (act.act === "later") this.judged.delete(entry.pair);
    else {
      if (!("judged" in form.dataset)) this.count(entry, act.act);
      markChosen(form, button.value);
      this.grades.set(entry.pair, gradeOf(button.value));
      this.judged.add(entry.pair);
      this.shown.push(entry);
    }
    outbox.add(act);
    this.advance();
  },

  // What the pair is to one that was read before: kept and sent like any act, while the pair stays on screen.
  compare(form, button) {
    for (const other of button.closest("[data-near]").querySelectorAll("[name=verdict]")) {
      other.setAttribute("aria-pressed", String(other === button));
    }
    const fields = [["verdict", button.value], ["as_user", form.elements.as_user.value]];
    outbox.add({ ...actOf(form, button), url: button.formAction, about: this.current.pair, fields });
  },

  // Between two looks at the true counts the page counts its own acts. A skip leaves the pair to others.
  count(entry, act) {
    const place = this.places.get(entry.question);
    const skipped = act.startsWith("skip:");
    if (place) place[skipped ? "total" : "done"] += skipped ? -1 : 1;
    if (this.batch && !skipped) {
      this.batch.seconds_left *= 1 - 1 / Math.max(1, this.batch.wanted - this.batch.done);
      this.batch.done += 1;
    }
  },

  advance() {
    this.current = null;
    this.shownAt = performance.now();
    this.ready = this.ready.filter((entry) => "judged" in entry.form.dataset || !outbox.of(entry.pair));
    const next = this.ready.shift();
    if (next) this.show(next);
    else if (this.end) this.showEnd();
    else {
      stage.replaceChildren(notice("desk-waiting", "Waiting for the next pair…"));
      this.fetchNext();
    }
  },

  show(entry) {
    const before = stage.querySelector("form.desk-pair");
    const focus = whereFocusIs();
    keepFolds(before, entry.form);
    stage.replaceChildren(entry.form);
    this.current = entry;
    this.shownAt = performance.now();
    settle(entry, true, focus);
    this.paint();
  },

  showEnd() {
    const holder = document.createElement("template");
    holder.innerHTML = this.end;
    stage.replaceChildren(holder.content);
    byId("question-progress").hidden = true;
    say(stage.querySelector("h1")?.textContent || "");
  },

  back() {
    const entry = this.shown.pop();
    if (!entry) {
      if (byId("back").href) window.location.assign(byId("back").href);
      return;
    }
    if (this.current) this.ready.unshift(this.current);
    this.show(entry);
    say("Back to the last one. Choose again to change it.");
  },

  // From a pair that was looked back at to where the work goes on.
  goOn() {
    if (this.current && "judged" in this.current.form.dataset) this.shown.push(this.current);
    this.advance();
  },

  async fetchNext() {
    if (this.asking) return;
    this.asking = true;
    const answer = await post(root.dataset.nextUrl, [...this.hands(), ["counts", "1"]]);
    this.asking = false;
    if (answer.data) this.take(answer.data);
    else if (answer.refused) warn(answer.refused);
    else outbox.enter(answer.failed);
    if (answer.failed === "offline" && !outbox.list().length) setTimeout(() => this.fetchNext(), 3000);
  },

  // What the browser has already, so that it is not sent again.
  hands() {
    const entries = [this.current, ...this.ready].filter(Boolean);
    const fields = [
      ["have", entries.map((entry) => entry.pair).join()],
      ["known", [...this.places.keys()].join()],
    ];
    if (Date.now() - this.countedAt > 20000) fields.push(["counts", "1"]);
    return fields;
  },

  // An answer of the server: more pairs, the true counts, or that nothing is left.
  take(data) {
    if (outbox.state === "offline" || outbox.state === "signed-out") outbox.enter("idle");
    if (data.held) {
      const held = new Set(data.held);
      this.ready = this.ready.filter((entry) => held.has(entry.pair) || "judged" in entry.form.dataset);
    }
    for (const item of data.next) {
      if (item.given !== undefined) this.given.set(item.question, elements(item.given));
      const here = [this.current, ...this.ready].some((entry) => entry?.pair === item.pair);
      if (!here && !outbox.of(item.pair) && !this.judged.has(item.pair)) this.add(entryOf(elements(item.html)[0]), data.order);
    }
    const unsent = outbox.list().filter((act) => act.pair && act.act !== "later" && !act.refused);
    for (const [question, place] of Object.entries(data.questions)) {
      const waiting = unsent.filter((act) => act.question === Number(question)).length;
      this.places.set(Number(question), { ...place, done: Math.min(place.total, place.done + waiting) });
    }
    if (data.batch) {
      this.batch = { ...data.batch, done: Math.min(data.batch.wanted, data.batch.done + unsent.length) };
      this.countedAt = Date.now();
    }
    this.end = data.end && !unsent.length ? data.end : null;
    if (this.end) this.ready = [];
    if (!this.current) this.advance();
    this.paint();
  },

  // Behind what lies ready, but what was put off comes at the end of its question, before the next one.
  add(entry, order) {
    const next = this.ready.findIndex(
      ({ pair, question }) => question !== entry.question && order.indexOf(pair) > order.indexOf(entry.pair),
    );
    this.ready.splice(next < 0 ? this.ready.length : next, 0, entry);
  },

  // The line of a saved judgment goes to the list of its question.
  saved(result) {
    const lines = (this.given.get(result.question) || []).filter((line) => Number(line.dataset.pair) !== result.pair);
    if (result.line) lines.unshift(...elements(result.line));
    this.given.set(result.question, lines);
    if (this.current?.question === result.question) fillGiven(this.current);
    if (result.notice) warn(result.said);
    const place = this.places.get(result.question);
    byId("saved").textContent = `${result.said}${place ? ` ${outOf(place.done, place.total)} in this question.` : ""}`;
  },

  paint() {
    const place = this.current && this.places.get(this.current.question);
    byId("question-progress").hidden = !place;
    if (place) {
      byId("question-bar").max = place.total || 1;
      byId("question-bar").value = place.done;
      byId("question-count").textContent = outOf(place.done, place.total);
    }
    if (this.batch) {
      byId("batch-count").textContent = outOf(this.batch.done, this.batch.wanted);
      byId("time-left").textContent = this.batch.done < this.batch.wanted ? `, about ${duration(this.batch.seconds_left)} left` : "";
    }
    const back = byId("back");
    const last = this.shown[this.shown.length - 1];
    if (last) {
      back.href = `${root.dataset.deskUrl}?pair=${last.pair}`;
      back.classList.remove("disabled");
      back.removeAttribute("aria-disabled");
    }
  },
};

const elements = (html) => {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  return [...holder.content.children];
};
const entryOf = (form) => ({ pair: Number(form.dataset.pair), question: Number(form.dataset.question), form });
const actOf = (form, button) => ({
  key: newKey(),
  label: button.dataset.label || button.firstChild.textContent.trim(),
  text: form.querySelector("h1").textContent,
  chosen: Date.now(),
});
const draftKey = (pair) => `fairpool-draft:${root.dataset.user}:${pair}`;
const duration = (seconds) =>
  seconds < 60 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;

function markChosen(form, act) {
  form.dataset.judged = "";
  form.querySelector("[data-key=l]")?.remove();
  for (const button of form.querySelectorAll("button[name=act]")) {
    if (button.classList.contains("desk-grade")) button.setAttribute("aria-pressed", String(button.dataset.key === gradeOf(act)));
  }
  for (const [key, kind] of [["s", "skip:"], ["c", "cannot-judge:"]]) {
    form.querySelector(`[data-key=${key}]`).setAttribute("aria-pressed", String(act.startsWith(kind)));
  }
}

// Folds that the reader opened for this question stay open for its next pair; nothing jumps.
function keepFolds(before, form) {
  if (!before || before === form) return;
  for (const fold of form.querySelectorAll("details[data-fold]")) {
    const old = before.querySelector(`details[data-fold=${fold.dataset.fold}]`);
    if (old) fold.open = old.open;
  }
}

// Focus that was on a button goes to the same button of the next pair, so that Tab and Enter work on; else to the text.
function whereFocusIs() {
  const active = document.activeElement;
  if (active && stage.contains(active) && active.name === "act" && active.closest(".desk-grades")) return active.value;
  return !active || active === document.body || stage.contains(active) ? "text" : null;
}

function settle(entry, moved, focus = "text") {
  const { form } = entry;
  fillGiven(entry);
  restoreDraft(entry);
  showSpans(form);
  const near = showNear(form);
  byId("highlight-form").elements.pair.value = entry.pair;
  clock.restart();
  const target = focus === "text" || focus === null ? form.querySelector(".desk-chunk") : form.querySelector(`[value="${focus}"]`);
  if (focus !== null && (moved || document.activeElement === document.body)) target?.focus({ preventScroll: true });
  if (moved) {
    form.querySelector(".desk-chunk").scrollTop = 0;
    window.scrollTo(0, 0);
    say(`Next: ${form.querySelector("h1").textContent}${near ? ` ${near.querySelector("p").innerText}` : ""}`);
  }
}

// What was begun on a pair and not sent yet outlives a reload and a look at another page: note, facts, evidence.
function keepDraft(entry) {
  const { elements } = entry.form;
  const facts = [...entry.form.querySelectorAll("[name=facts]:checked")].map((box) => box.value);
  storage.set(draftKey(entry.pair), JSON.stringify({ note: elements.note.value, facts, spans: elements.spans.value }));
}

function restoreDraft({ pair, form }) {
  let draft = null;
  try {
    draft = JSON.parse(storage.get(draftKey(pair)));
  } catch { /* not ours */ }
  if (!draft) return;
  form.elements.note.value = draft.note;
  form.elements.spans.value = draft.spans;
  if (draft.note) openNote(form, false);
  for (const box of form.querySelectorAll("[name=facts]")) {
    box.checked = draft.facts.includes(box.value);
    if (box.checked) box.closest("details").open = true;
  }
}

function openNote(form, focus) {
  if (!form) return;
  form.querySelector("[data-note]").classList.add("open");
  if (focus) form.elements.note.focus();
}

function fillGiven(entry) {
  const list = entry.form.querySelector("[data-given]");
  list.replaceChildren(...(desk.given.get(entry.question) || []));
}

// -------------------------------------------------------------------------------------------------------- wiring

const outbox = new Outbox(
  `fairpool-act:${root.dataset.user}:${root.dataset.batch}:`,
  async (act) => {
    const fields = [...act.fields, ["key", act.key], ["chosen_ago", ((Date.now() - act.chosen) / 1000).toFixed(1)], ...desk.hands()];
    const answer = await post(act.url, fields);
    if (answer.failed) return answer.failed;
    if (answer.refused) return { refused: answer.refused };
    outbox.acts.delete(act.key); // so that the counts of the answer are not raised by it once more
    if (act.pair) {
      desk.saved(answer.data.saved);
      desk.take(answer.data);
    } else say(answer.data.said);
    return "done";
  },
  () => queueMicrotask(paintTray),
);

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("form.desk-pair")) {
    event.preventDefault();
    if (!event.submitter?.value || desk.current?.form !== form) return;
    if (event.submitter.name === "verdict") desk.compare(form, event.submitter);
    else desk.act(form, event.submitter);
  } else if (form.id === "highlight-form") {
    event.preventDefault();
    const on = root.classList.toggle("highlight");
    byId("highlight").setAttribute("aria-pressed", String(on));
    document.cookie = `fairpool_highlight=${on ? 1 : 0}; path=/; max-age=31536000; SameSite=Lax`;
  }
});
document.addEventListener("keydown", onKey);
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-key=e]")) {
    const form = event.target.closest("form");
    if (window.getSelection().isCollapsed) openEvidence(form);
    else say(markEvidence(form));
  }
  if (event.target.closest("[data-key=n]")) openNote(stage.querySelector("form.desk-pair"), true);
  if (event.target.closest("[data-key=o]")) {
    event.preventDefault();
    desk.goOn();
  }
  // The second click of a double click: the button under it is already the next pair's.
  if (event.detail > 1 && event.target.closest("[name=act]")) event.preventDefault();
  if (event.target.closest("#back") && desk.shown.length) {
    event.preventDefault();
    desk.back();
  }
});
// Pressing a button with the mouse must not take the selection that "Evidence" is about.
document.addEventListener("pointerdown", (event) => {
  if (event.target.closest("[data-key=e]")) event.preventDefault();
});
document.addEventListener("input", (event) => {
  if (["note", "facts"].includes(event.target.name) && desk.current) keepDraft(desk.current);
});
window.addEventListener("beforeunload", (event) => {
  if (!leaving && outbox.list().some((act) => !act.refused)) event.preventDefault();
});

let asked = Date.now();
setInterval(() => {
  const active = clock.tick();
  if (active && desk.current && Date.now() - asked > 240000) {
    asked = Date.now();
    desk.fetchNext(); // reading long is an act as well: it renews the lease
  }
  if (outbox.list().length) paintTray();
}, 1000);

root.classList.add("scripted");
desk.start();
