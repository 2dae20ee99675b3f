"use strict";
// Draws the figures, one after the other so that the page answers meanwhile, and again when the
// theme changes or the page is printed.
(() => {
  const root = document.documentElement;
  const source = document.getElementById("figures").textContent;
  const charts = [...document.querySelectorAll(".chart")];
  const config = {
    displaylogo: false,
    responsive: true,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };

  // A chart that is missing must not look like a phase without figures.
  const fail = (reason) => {
    root.dataset.charts = "failed";
    const place = document.getElementById("failed");
    if (place) {
      place.hidden = false;
      place.textContent = `The charts could not be drawn: ${reason}`;
    }
  };
  addEventListener("error", (event) => fail(event.message));
  addEventListener("unhandledrejection", (event) => fail(event.reason));

  // "var(--name)" and "var(--name) 20%" as colours that Plotly can read.
  const style = getComputedStyle(root);
  const colour = (text) => {
    const match = /^var\((--[a-z0-9-]+)\)(?: (\d+)%)?$/.exec(text);
    if (!match) return text;
    const hex = style.getPropertyValue(match[1]).trim();
    if (!match[2]) return hex;
    const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return `rgba(${parts.join(",")},${match[2] / 100})`;
  };
  const parse = () =>
    JSON.parse(source, (key, value) => (typeof value === "string" ? colour(value) : value));

  // A heatmap holds logarithms; people read numbers.
  const spell = (trace) => {
    if (trace.type !== "heatmap" || trace.text) return;
    const word = (z) => (z === null ? "" : Number((10 ** z).toPrecision(3)).toLocaleString("en"));
    trace.text = trace.z.map((row) => row.map(word));
  };

  let figures = parse();
  const draw = (chart) => {
    const { data, layout } = figures[chart.dataset.figure];
    data.forEach(spell);
    if (layout.height) chart.style.height = `${layout.height}px`;
    // Plotly's types in Rust do not know this: room between an axis's labels and its title.
    layout.xaxis.title.standoff = layout.yaxis.title.standoff = 10;
    return Plotly.react(chart, data, layout, config);
  };
  const drawAll = () => {
    figures = parse();
    charts.forEach(draw);
  };

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("beforeprint", () => {
    root.classList.add("printing");
    drawAll();
    charts.forEach((chart) => Plotly.Plots.resize(chart));
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    drawAll();
    charts.forEach((chart) => Plotly.Plots.resize(chart));
  });

  const next = (i) => {
    if (i < charts.length) {
      Promise.resolve(draw(charts[i])).then(() => setTimeout(next, 0, i + 1));
    } else if (!root.dataset.charts) {
      root.dataset.charts = "drawn";
    }
  };
  next(0);
})();
