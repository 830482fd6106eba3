// Marking words of the chunk as evidence of a judgment. Loaded before desk.js.

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
  form.elements.spans.value = JSON.stringify(spans);
  selection.removeAllRanges();
  showSpans(form);
  return "Marked as evidence.";
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
      form.elements.spans.value = JSON.stringify(spans.filter((_, other) => other !== index));
      showSpans(form);
    });
    const quote = document.createElement("q");
    quote.dir = "auto";
    quote.textContent = span.text;
    line.append(quote, " ", drop);
    return line;
  }));
}
