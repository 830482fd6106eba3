// The lead's room: draws the grades over time from their table, and keeps the page still while it is asked for anew.
(() => {
  "use strict";

  let chart = null;
  let kept = null;
  const live = () => document.getElementById("live");
  const style = (element) => getComputedStyle(element);
  const colour = (name) => style(document.documentElement).getPropertyValue(name).trim();

  // Each column with `data-series` is a layer of the bars, in the colour of the grade in its heading.
  function layers(table) {
    const headings = [...table.querySelectorAll("thead th")];
    const rows = [...table.querySelectorAll("tbody tr")];
    const datasets = headings
      .map((heading, index) => ({ heading, index }))
      .filter(({ heading }) => heading.dataset.series !== undefined)
      .map(({ heading, index }) => {
        const badge = style(heading.querySelector(".grade"));
        return {
          label: heading.dataset.series,
          data: rows.map((row) => Number(row.children[index].dataset.value)),
          backgroundColor: badge.backgroundColor,
          borderColor: colour("--bs-secondary-color"),
          borderWidth: 1,
          ink: badge.color,
        };
      });
    return { labels: rows.map((row) => row.dataset.label), datasets };
  }

  // The grade stands in each piece of a bar that has room for it.
  const digits = {
    id: "digits",
    afterDatasetsDraw(drawn) {
      const { ctx } = drawn;
      ctx.save();
      ctx.font = `11px ${colour("--bs-font-sans-serif")}`;
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      drawn.data.datasets.forEach((layer, number) => {
        ctx.fillStyle = layer.ink;
        drawn.getDatasetMeta(number).data.forEach((bar, place) => {
          if (layer.data[place] && bar.height > 13 && bar.width > 9) ctx.fillText(layer.label, bar.x, bar.y + bar.height / 2);
        });
      });
      ctx.restore();
    },
  };

  function draw() {
    const figure = document.querySelector("figure.chart");
    chart?.destroy();
    chart = null;
    if (!figure || !window.Chart) return;
    figure.classList.add("drawn");
    const ticks = { color: colour("--bs-secondary-color"), font: { family: colour("--bs-font-sans-serif") } };
    chart = new window.Chart(figure.querySelector("canvas"), {
      type: "bar",
      data: layers(document.getElementById(figure.dataset.table)),
      plugins: [digits],
      options: {
        animation: false,
        maintainAspectRatio: false,
        plugins: { legend: { display: false } },
        scales: {
          x: { stacked: true, grid: { display: false }, ticks: { ...ticks, maxRotation: 0, autoSkip: true } },
          y: {
            stacked: true,
            min: 0,
            grid: { color: colour("--bs-border-color") },
            ticks: { ...ticks, precision: 0 },
            title: { display: true, text: "judgments", color: ticks.color },
          },
        },
      },
    });
  }

  // Nobody looks, or somebody marks text in it: it stays as it is until the next time.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt !== live()) return;
    const selection = document.getSelection();
    const marking = !selection.isCollapsed && live().contains(selection.anchorNode);
    if (document.hidden || marking) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && live()?.hasAttribute("hx-get")) window.htmx.trigger(live(), "look");
  });

  // What was open, scrolled or in focus is so again; htmx itself gives the focus back to what has an ID.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target !== live()) return;
    kept = {
      open: [...live().querySelectorAll("details[open]")].map((fold) => fold.id),
      scrolled: [...live().querySelectorAll(".table-scroll")].map((box) => [box.id, box.scrollLeft, box.scrollTop]),
    };
  });
  document.addEventListener("htmx:afterSwap", () => {
    if (!kept) return;
    for (const id of kept.open) document.getElementById(id)?.setAttribute("open", "");
    for (const [id, left, top] of kept.scrolled) document.getElementById(id)?.scrollTo({ left, top, behavior: "instant" });
    kept = null;
    draw();
  });

  draw();
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
})();
