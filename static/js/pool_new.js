// A strategy that has settings unfolds them when it is chosen.
"use strict";

document.addEventListener("change", (event) => {
  if (event.target.name !== "strategy") return;
  const settings = document.querySelector(`[data-settings-of="${event.target.value}"]`);
  if (settings) settings.open = true;
});
