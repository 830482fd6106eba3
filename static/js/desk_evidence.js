// Marking words of the chunk as evidence of a judgment. Loaded before desk.js, whose `desk` and `keepDraft` it uses.

"use strict";

const charactersIn = (text) => [...text].length; // places are counted in characters, not in UTF-16 units

// Adds the selected words to the form's spans; returns what became of it, in words.
function markEvidence(form) {
  const selection = window.getSelection();
  const range = selection.rangeCount ? selection.getRangeAt(0) : null;
  const from = range && (range.startContainer.nodeType === Node.ELEMENT_NODE ? range.startContainer : range.startContainer.parentElement);
  const block = from && from.closest("[data-start]");
  const words = range ? range.toString() : "";
  if (!block || !form.contains(block) || !block.contains(range.endContainer) || !words.trim()) {
    return "Select words in the text first, then mark them as evidence.";
  }
  const before = document.createRange();
  before.setStart(block, 0);
  before.setEnd(range.startContainer, range.startOffset);
  const start = Number(block.dataset.start) + charactersIn(before.toString());
  const spans = JSON.parse(form.elements.spans.value);
  spans.push({ start, end: start + charactersIn(words), text: words });
  setSpans(form, spans);
  selection.removeAllRanges();
  return "Marked as evidence.";
}

function setSpans(form, spans) {
  form.elements.spans.value = JSON.stringify(spans);
  showSpans(form);
  if (desk.current?.form === form) keepDraft(desk.current);
}

// Without a selection, which not every keyboard can make, the words are typed or pasted: one passage a line.
function openEvidence(form) {
  form.querySelector("[data-evidence]").classList.add("open");
  form.elements.evidence.focus();
}

// Turns the typed lines into spans. A line that is not in the text stays in the field and is told; then it is false.
function takeTyped(form) {
  const field = form.elements.evidence;
  const text = [...form.querySelectorAll(".desk-text [data-start]")].map((block) => block.textContent).join("");
  const missing = [];
  for (const line of field.value.split("\n").map((words) => words.trim()).filter(Boolean)) {
    const words = line.split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const found = new RegExp(words.join("\\s+")).exec(text);
    if (!found) {
      missing.push(line);
      continue;
    }
    const start = charactersIn(text.slice(0, found.index));
    setSpans(form, [...JSON.parse(form.elements.spans.value), { start, end: start + charactersIn(found[0]), text: found[0] }]);
  }
  field.value = missing.join("\n");
  const problem = form.querySelector("[data-evidence-problem]");
  problem.textContent = missing.length ? `These words are not in the text: “${missing.join("”, “")}”. Correct them, or take them out.` : "";
  field.setAttribute("aria-invalid", String(missing.length > 0));
  return missing.length === 0;
}

function showSpans(form) {
  const spans = JSON.parse(form.elements.spans.value || "[]");
  const list = form.querySelector("[data-spans]");
  list.hidden = !spans.length;
  list.replaceChildren(...spans.map((span, index) => {
    const line = document.createElement("li");
    const drop = document.createElement("button");
    drop.type = "button";
    drop.className = "btn btn-sm btn-link";
    drop.textContent = "Unmark";
    drop.addEventListener("click", () => {
      setSpans(form, spans.filter((_, other) => other !== index));
      form.querySelector(".desk-chunk").focus({ preventScroll: true });
    });
    const quote = document.createElement("q");
    quote.dir = "auto";
    quote.textContent = span.text;
    line.append(quote, " ", drop);
    return line;
  }));
}
