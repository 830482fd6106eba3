// A key presses the button, follows the link or goes into the field that names it in data-key, unless somebody is
// typing; Escape ends that.
"use strict";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest("input, textarea, select, [contenteditable], .dropdown-menu")) {
    if (event.key === "Escape" && event.target.matches("input, textarea")) event.target.blur();
    return;
  }
  const named = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!named || named.disabled) return;
  event.preventDefault();
  named.control?.focus(); // where it is the label of a field
  named.click();
});

// What was decided is gone from the page; reading goes on where the next pair begins.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target.id === "main") document.getElementById("main").focus({ preventScroll: true });
});
