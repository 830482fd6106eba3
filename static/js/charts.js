// Draws a figure from the table that stands below it, so picture and table cannot differ.
//
// <figure class="chart" data-chart="lines|bars" data-table="id of the table">: rows with `data-label` are what is
// compared; cells with `data-value` are the numbers. For lines, a heading's `data-x` is its place on the axis; for
// bars, a heading's `data-series` names what its column shows. Shares are shown as per cent unless `data-counts` or
// `data-plain`; `data-x-title` and `data-y-title` name the axes of lines.
(() => {
  "use strict";

  const figures = [...document.querySelectorAll("figure.chart")];
  if (!figures.length || !window.Chart) return;
  const charts = new Map();

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dashes = [[], [8, 4], [2, 3], [12, 4, 2, 4], [5, 5], [1, 2]];

  function read(figure) {
    const table = document.getElementById(figure.dataset.table);
    const headings = [...table.querySelectorAll("thead th")];
    const rows = [...table.querySelectorAll("tbody tr[data-label]")].map((row) => ({
      label: row.dataset.label,
      values: [...row.children].map((cell) => (cell.dataset.value === undefined ? null : Number(cell.dataset.value))),
    }));
    return { table, headings, rows };
  }

  // The names of lines in the order of their ends, pushed apart where they would touch, each joined to its line.
  function labelLineEnds(chart, ctx, letters) {
    const ends = [];
    chart.data.datasets.forEach((dataset, index) => {
      let last = dataset.data.length - 1;
      while (last >= 0 && dataset.data[last] === null) last -= 1;
      if (last < 0) return;
      const point = chart.getDatasetMeta(index).data[last];
      ends.push({ text: dataset.label, colour: dataset.borderColor, x: point.x, y: point.y, at: point.y });
    });
    ends.sort((a, b) => a.y - b.y);
    ends.forEach((end, i) => { if (i) end.at = Math.max(end.at, ends[i - 1].at + 15); });
    const over = ends.length ? Math.max(0, ends.at(-1).at - chart.chartArea.bottom) : 0;
    for (const end of ends) {
      ctx.strokeStyle = end.colour;
      ctx.lineWidth = 1;
      ctx.beginPath();
      ctx.moveTo(end.x + 4, end.y);
      ctx.lineTo(end.x + 16, end.at - over);
      ctx.stroke();
      const text = end.text.length > letters ? `${end.text.slice(0, letters - 1)}…` : end.text;
      ctx.fillText(text, end.x + 20, end.at - over);
    }
  }

  // Labels stand at the ends of lines and bars, not in a legend.
  const directLabels = {
    id: "directLabels",
    afterDatasetsDraw(chart, _args, options) {
      const { ctx } = chart;
      ctx.save();
      ctx.fillStyle = colour("--bs-body-color");
      ctx.font = `12px ${colour("--bs-font-sans-serif")}`;
      ctx.textBaseline = "middle";
      if (options.kind === "lines") {
        labelLineEnds(chart, ctx, options.letters);
      } else {
        chart.data.datasets.forEach((dataset, index) => {
          chart.getDatasetMeta(index).data.forEach((bar, place) => {
            const value = dataset.data[place];
            if (value === null) return;
            const number = options.counts ? String(value) : value.toFixed(4);
            const text = chart.data.datasets.length > 1 ? `${number} ${dataset.label}` : number;
            ctx.fillText(text, bar.x + 6, bar.y);
          });
        });
      }
      ctx.restore();
    },
  };

  function lines({ headings, rows }) {
    const at = headings.map((heading, index) => [heading.dataset.x, index]).filter(([x]) => x !== undefined);
    return {
      labels: at.map(([x]) => x),
      datasets: rows.map((row, number) => ({
        label: row.label,
        data: at.map(([, index]) => row.values[index]),
        borderColor: number % 2 ? colour("--bs-secondary-color") : colour("--fp-accent"),
        backgroundColor: "transparent",
        borderDash: dashes[Math.floor(number / 2) % dashes.length],
        borderWidth: 2,
        pointRadius: 2.5,
      })),
    };
  }

  function bars({ headings, rows }) {
    const series = headings.map((heading, index) => [heading.dataset.series, index]).filter(([name]) => name);
    return {
      labels: rows.map((row) => row.label),
      datasets: series.map(([name, index], number) => ({
        label: name,
        data: rows.map((row) => row.values[index]),
        backgroundColor: number ? colour("--fp-grade-1") : colour("--fp-accent"),
        borderColor: colour("--fp-accent"),
        borderWidth: 1,
      })),
    };
  }

  function draw(figure) {
    const kind = figure.dataset.chart;
    const counts = figure.dataset.counts !== undefined;
    const found = read(figure);
    if (!found.rows.length) return;
    figure.classList.add("drawn");
    charts.get(figure)?.destroy();
    const text = colour("--bs-secondary-color");
    const grid = { color: colour("--bs-border-color") };
    const ticks = { color: text, font: { family: colour("--bs-font-sans-serif") } };
    const plain = figure.dataset.plain !== undefined;
    const share = plain ? ticks : { ...ticks, callback: (value) => `${Math.round(value * 100)} %` };
    const isLines = kind === "lines";
    const longest = Math.max(...found.rows.map((row) => row.label.length));
    const width = figure.querySelector(".chart-box").clientWidth;
    const room = isLines ? Math.min(260, 30 + 7 * longest, 0.45 * width) : 120;
    charts.set(figure, new window.Chart(figure.querySelector("canvas"), {
      type: isLines ? "line" : "bar",
      data: isLines ? lines(found) : bars(found),
      plugins: [directLabels],
      options: {
        animation: false,
        maintainAspectRatio: false,
        indexAxis: isLines ? "x" : "y",
        layout: { padding: { right: room } },
        plugins: { legend: { display: false }, directLabels: { kind, counts, letters: Math.floor((room - 26) / 7) } },
        scales: isLines
          ? {
              x: { grid, ticks, title: { display: true, text: figure.dataset.xTitle ?? "depth k", color: text } },
              y: { suggestedMin: 0, max: 1, grid, ticks: share, title: { display: true, text: figure.dataset.yTitle ?? "unjudged", color: text } },
            }
          : { x: { min: 0, grid, ticks }, y: { grid: { display: false }, ticks } },
      },
    }));
  }

  const drawAll = () => figures.forEach(draw);
  drawAll();
  new MutationObserver(drawAll).observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
})();
