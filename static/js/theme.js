// Runs before the first paint: dark or light by the system's setting, or by hand; and tells the server the reader's zone.
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null;
    }
  };
  const apply = () => root.setAttribute("data-bs-theme", chosen() || (system.matches ? "dark" : "light"));
  apply();
  system.addEventListener("change", apply);

  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.includes(`tz=${zone}`)) {
    document.cookie = `tz=${zone}; path=/; max-age=31536000; SameSite=Lax`;
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-theme-choice]")) {
      button.addEventListener("click", () => {
        const choice = button.dataset.themeChoice;
        if (choice === "auto") localStorage.removeItem("theme");
        else localStorage.setItem("theme", choice);
        apply();
        mark();
      });
    }
    const mark = () => {
      for (const button of document.querySelectorAll("[data-theme-choice]")) {
        button.setAttribute("aria-pressed", String(button.dataset.themeChoice === (chosen() || "auto")));
      }
    };
    mark();
  });
})();
