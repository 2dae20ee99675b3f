"use strict";
// The charts of a view: one time axis, with zoom, pan and pointer in common. uPlot draws; what is below it here are
// the lines of the view, its markers and its findings.
(() => {
  const root = document.documentElement;
  const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
  const LEAST = 600, MOST = 366 * 86400;
  const style = getComputedStyle(root);
  const named = (name) => style.getPropertyValue(name).trim();
  const faded = (hex, share) => `rgba(${[1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(",")},${share})`;
  const element = (name, parent, kind, text) => {
    const made = parent.appendChild(document.createElement(name));
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // Lines that the reader has put away, by chart and name.
  const away = new Set();
  let plots = [];
  let view = null;
  let words = null;
  let refresh = null;

  // The charts of the view, each with its lines: a name, and what was there at each time.
  const line = (name, values, i, more) => ({ name, ...values, colour: `--run-${i % 7}`, dash: i > 6 ? [6, 4] : [], ...more });
  const shares = () => {
    const bounds = view.bounds_ms;
    const name = (i) => (i < bounds.length ? `≤ ${words.duration(bounds[i])}` : `> ${words.duration(bounds[i - 1])}`);
    // The slowest at the bottom, where a small share is seen best.
    let below = view.time_s.map(() => 0);
    const lines = view.shares.map((share, i) => ({ name: name(i), own: share, class: i })).reverse();
    for (const one of lines) {
      below = below.map((sum, i) => (one.own[i] === null ? null : (sum ?? 0) + one.own[i]));
      one.mean = below;
      const last = Math.max(view.shares.length - 1, 1);
      one.colour = `--class-${Math.round((one.class / last) * 4)}`;
    }
    return lines.reverse();
  };
  const charts = () => {
    const several = new Set([...view.disks, ...view.hosts].map((one) => one.hostname)).size > 1;
    const disks = (key) => view.disks.map((disk, i) => line(several ? `${disk.hostname}/${disk.name}` : disk.name, disk[key], i));
    const hosts = (key) => view.hosts.map((host, i) => line(host.hostname, host[key], i));
    const { duration, number, percent } = words;
    const times = [["p99", view.p99_ms, 1], ["p95", view.p95_ms, 4], ["p50", view.p50_ms, 0]];
    return [
      { title: "Shares of response times", lines: shares(), word: percent, stack: true, most: 1, tall: true },
      { title: "Response time", lines: times.map(([name, values, i]) => line(name, values, i)), word: duration, log: true, tall: true },
      { title: "Requests per second", lines: [line("requests/s", view.requests_per_s, 2)], word: number },
      { title: "Disk latency (await)", lines: disks("await_ms"), word: duration, log: true },
      { title: "Disk utilization", lines: disks("busy_fraction"), word: percent, most: 1 },
      { title: "Disk queue", lines: disks("queue"), word: number },
      { title: "Disk IOPS", lines: disks("iops"), word: number },
      { title: "CPU busy", lines: hosts("cpu_busy_fraction"), word: percent, most: 1 },
      { title: "I/O pressure (PSI some)", lines: hosts("io_pressure_fraction"), word: percent, most: 1 },
      ...view.series.map((one, i) => ({ title: one.name, lines: [line(one.name, one.values, i + 2)], word: number })),
    ].filter((chart) => chart.lines.some((one) => one.mean.some((value) => value !== null)));
  };

  // Zoom and pan: at once with the points that are there, and a moment later with those of the new range.
  const range = () => [plots[0].scales.x.min, plots[0].scales.x.max];
  let pending = 0;
  const go = (from, to) => {
    const span = Math.min(Math.max(to - from, LEAST), MOST);
    const middle = (from + to) / 2;
    [from, to] = [Math.round(middle - span / 2), Math.round(middle + span / 2)];
    plots.forEach((plot) => plot.setScale("x", { min: from, max: to }));
    clearTimeout(pending);
    pending = setTimeout(() => {
      const url = new URL(location);
      url.searchParams.delete("last");
      url.searchParams.set("from", from);
      url.searchParams.set("to", to);
      history.pushState(null, "", url);
      refresh();
    }, 250);
  };
  const pan = (share) => {
    const [from, to] = range();
    go(from + share * (to - from), to + share * (to - from));
  };
  const zoom = (factor, at) => {
    const [from, to] = range();
    const middle = at ?? (from + to) / 2;
    go(middle - (middle - from) * factor, middle + (to - middle) * factor);
  };
  addEventListener("popstate", () => refresh?.());

  const wheel = (u, event) => {
    if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (event.ctrlKey) zoom(event.deltaY > 0 ? 1.25 : 0.8, u.posToVal(u.cursor.left, "x"));
    else pan((event.deltaX || event.deltaY) / u.over.clientWidth / 2);
  };
  const keys = (event) => {
    const at = plots[0]?.cursor.idx ?? (event.key === "ArrowLeft" ? view.time_s.length : -1);
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && event.shiftKey) pan(step / 4);
    else if (step) point(at + step);
    else if (event.key === "Home") point(0);
    else if (event.key === "End") point(view.time_s.length - 1);
    else if (event.key === "+" || event.key === "=") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else return;
    event.preventDefault();
  };
  // Puts the pointer on a time, and says what was there.
  const point = (at) => {
    const i = Math.min(Math.max(at, 0), view.time_s.length - 1);
    for (const plot of plots) plot.setCursor({ left: plot.valToPos(view.time_s[i], "x"), top: 10 }, true, false);
    const said = plots.map((plot) => plot.chart.lines.map((one) => `${one.name} ${value(plot.chart, one, i)}`).join(", "));
    document.getElementById("spoken").textContent = `${moment(i)}. ${said.join(". ")}`;
  };

  const value = (chart, one, i) => {
    const [mean, most] = [(one.own || one.mean)[i], one.max?.[i]];
    if (mean === null || mean === undefined) return "–";
    return most === null || most === undefined || chart.word(most) === chart.word(mean)
      ? chart.word(mean)
      : `${chart.word(mean)} (most ${chart.word(most)})`;
  };
  const moment = (i) => words.clock.format(new Date(view.time_s[i] * 1000));
  const seconds = (text) => Date.parse(text) / 1000;
  const readout = (u) => {
    const i = u.cursor.idx;
    const latest = (one) => one.mean.findLastIndex((value) => value !== null);
    u.chart.lines.forEach((one, n) => (u.chart.values[n].textContent = value(u.chart, one, i ?? latest(one))));
    if (u !== plots[0]) return;
    const at = i ?? view.time_s.length - 1;
    const [from, to] = [view.time_s[at], view.time_s[at] + view.slot_s];
    const markers = view.markers.filter((marker) => seconds(marker.time) >= from && seconds(marker.time) < to);
    const open = view.findings.filter((one) => seconds(one.began) < to && (!one.ended || seconds(one.ended) >= from));
    const also = [...markers.map((one) => `▼ ${one.text}`), ...open.map((one) => `${one.code} ${one.hostname}/${one.name}`)];
    document.getElementById("cursor").textContent = [i === null ? "Latest" : moment(at), ...also].join("  ·  ");
  };

  // Findings as bands below the lines, markers as lines above them.
  const bands = (u) => {
    const { left, top, width, height } = u.bbox;
    u.ctx.save();
    for (const one of view.findings) {
      const x = (text) => Math.min(Math.max(u.valToPos(text ? seconds(text) : u.scales.x.max, "x", true), left), left + width);
      const [from, to] = [x(one.began), x(one.ended)];
      const colour = named(one.severity === "warn" ? "--invalid" : "--note");
      const wide = Math.max(to - from, 2);
      u.ctx.fillStyle = faded(colour, 0.13);
      u.ctx.fillRect(from, top, wide, height);
      // Seen above an area too.
      u.ctx.fillStyle = colour;
      u.ctx.fillRect(from, top - 5 * devicePixelRatio, wide, 3 * devicePixelRatio);
    }
    u.ctx.restore();
  };
  const marks = (u) => {
    const { left, top, width, height } = u.bbox;
    const ratio = devicePixelRatio;
    const ends = [];
    const c = u.ctx;
    c.save();
    c.beginPath();
    c.rect(left, top, width, height);
    c.clip();
    c.font = FONT.replace("11px", `${11 * ratio}px`);
    c.strokeStyle = named("--marker");
    c.lineWidth = 1.2 * ratio;
    c.textBaseline = "top";
    c.textAlign = "left";
    for (const marker of view.markers) {
      const x = u.valToPos(seconds(marker.time), "x", true);
      if (x < left || x > left + width) continue;
      c.setLineDash([5 * ratio, 4 * ratio]);
      c.beginPath();
      c.moveTo(x, top);
      c.lineTo(x, top + height);
      c.stroke();
      if (u !== plots[0] && plots.length) continue;
      const long = c.measureText(marker.text).width + 8 * ratio;
      const from = x + long > left + width ? Math.max(x - long, left) : x;
      const row = [0, 1, 2].find((at) => (ends[at] ?? -Infinity) < from);
      if (row === undefined) continue;
      ends[row] = from + long;
      const y = top + (3 + row * 15) * ratio;
      c.fillStyle = faded(named("--surface"), 0.85);
      c.fillRect(from + ratio, y - ratio, long - 2 * ratio, 14 * ratio);
      c.fillStyle = named("--marker");
      c.fillText(marker.text, from + 4 * ratio, y);
    }
    c.restore();
  };

  const extent = (chart) => (u, low, high) => {
    if (chart.most) return [0, chart.most];
    if (low === null || high === null) return chart.log ? [1, 10] : [0, 1];
    if (!chart.log) return [Math.min(low, 0), high > 0 ? high * 1.08 : 1];
    return [10 ** Math.floor(Math.log10(low) - 0.02), 10 ** Math.ceil(Math.log10(high) + 0.02)];
  };
  // Times of day in the reader's zone, with the date below the first of each day.
  const times = (self, splits, axis, space, step) => {
    let day = "";
    return splits.map((at) => {
      const [date, time] = words.clock.format(new Date(at * 1000)).split(" ");
      const text = step < 60 ? time : step < 86400 ? time.slice(0, 5) : "";
      const isFirst = date !== day;
      day = date;
      return [text, isFirst ? date : ""].filter(Boolean).join("\n");
    });
  };
  // A value between two gaps has no line: it is seen as a point.
  const alone = (self, s, isShown) => {
    const values = self.data[s];
    const isAlone = (i) => values[i] != null && values[i - 1] == null && values[i + 1] == null;
    return isShown ? null : values.map((_, i) => i).filter(isAlone);
  };
  const draw = (chart, holder) => {
    const figure = element("figure", holder);
    const caption = element("figcaption", figure);
    element("h2", caption, "", chart.title);
    const legend = element("div", caption, "keys");
    const data = [view.time_s];
    const series = [{}];
    const fills = [];
    const positive = (values) => (chart.log ? values.map((value) => (value > 0 ? value : null)) : values);
    const add = (values, look) => series.push(look) && data.push(positive(values));
    chart.values = chart.lines.map((one) => {
      const colour = named(one.colour);
      const from = series.length;
      if (one.min && one.max) {
        const unseen = { stroke: "transparent", width: 0, points: { show: false } };
        add(one.max, unseen);
        add(one.min, { ...unseen });
        fills.push({ series: [from, from + 1], fill: faded(colour, 0.22) });
      }
      const points = { size: 4, show: (self, s, i0, i1) => i1 - i0 < 80, filter: alone };
      add(one.mean, chart.stack
        ? { stroke: colour, fill: colour, width: 0, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) }
        : { stroke: colour, width: 1.6, dash: one.dash, points });
      const key = element("button", legend, "key");
      key.type = "button";
      const sign = element("i", key, chart.stack ? "box" : one.dash?.length ? "dash" : "");
      sign.style.color = colour;
      element("span", key, "data", one.name);
      const shown = element("b", key);
      const [to, name] = [series.length, `${chart.title}\n${one.name}`];
      const show = () => key.setAttribute("aria-pressed", String(!away.has(name)));
      series.slice(from).forEach((each) => (each.show = !away.has(name)));
      show();
      key.onclick = () => {
        if (!away.delete(name)) away.add(name);
        show();
        for (let i = from; i < to; i += 1) u.setSeries(i, { show: !away.has(name) });
      };
      return shown;
    });
    const place = element("div", figure, "plot");
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", `${chart.title}: ${chart.lines.map((one) => one.name).join(", ")}`);
    const axis = { stroke: named("--muted"), font: FONT, grid: { stroke: named("--grid"), width: 1 }, ticks: { stroke: named("--grid"), width: 1, size: 4 } };
    const u = new uPlot({
      width: Math.max(place.clientWidth, 200), height: chart.tall ? 230 : 160, padding: [8, 28, 0, 0],
      legend: { show: false }, bands: fills,
      cursor: {
        sync: { key: "view" }, y: false, drag: { x: true, y: false, setScale: false }, points: { show: !chart.stack },
      },
      scales: { x: { time: true, auto: false, min: seconds(view.from), max: seconds(view.to), range: (self, low, high) => [low, high] }, y: { distr: chart.log ? 3 : 1, range: extent(chart) } },
      axes: [
        { ...axis, space: 76, size: 38, values: times },
        { ...axis, size: 60, space: 26, values: (self, splits) => splits.map((at) => (at === null ? "" : chart.word(at).replace(/\.0+(?=\D|$)/, ""))) },
      ],
      series,
      hooks: {
        drawClear: [bands], draw: [marks], setCursor: [(self) => self.chart && readout(self)],
        setSelect: [(self) => self.select.width > 4 && go(self.posToVal(self.select.left, "x"), self.posToVal(self.select.left + self.select.width, "x"))],
      },
    }, data, place);
    u.chart = chart;
    u.over.addEventListener("wheel", (event) => wheel(u, event), { passive: false });
    table(chart, figure);
    return u;
  };
  // All figures of a chart, made when they are asked for.
  const table = (chart, figure) => {
    const details = element("details", figure, "table");
    element("summary", details, "", "Table");
    details.setAttribute("aria-label", `Table of ${chart.title}`);
    details.ontoggle = () => {
      if (!details.open || details.childElementCount > 1) return;
      const holder = element("div", details, "scroll tall");
      holder.tabIndex = 0;
      holder.setAttribute("role", "region");
      holder.setAttribute("aria-label", `Table of ${chart.title}`);
      const made = element("table", holder, "results");
      const head = element("tr", element("thead", made));
      const heading = (text, kind) => (element("th", head, kind, text).scope = "col");
      heading("Time");
      chart.lines.forEach((one) => heading(one.name, "n data"));
      const body = element("tbody", made);
      view.time_s.forEach((_, i) => {
        const row = element("tr", body);
        element("th", row, "", moment(i)).scope = "row";
        chart.lines.forEach((one) => element("td", row, "n", value(chart, one, i)));
      });
    };
  };

  const resize = () => plots.forEach((plot) => plot.setSize({ width: Math.max(plot.root.parentNode.clientWidth, 200), height: plot.height }));
  addEventListener("resize", resize);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => refresh?.());

  window.serveCharts = (again, formats) => {
    plots.forEach((plot) => plot.destroy());
    plots = [];
    const holder = document.getElementById("charts");
    const source = document.getElementById("view");
    if (!holder || !source) return;
    [refresh, words, view] = [again, formats, JSON.parse(source.textContent)];
    const figures = document.createElement("div");
    holder.append(figures);
    for (const chart of charts()) plots.push(draw(chart, figures));
    plots.forEach(readout);
    holder.onkeydown = keys;
    for (const [id, act] of Object.entries({ earlier: () => pan(-0.5), later: () => pan(0.5), closer: () => zoom(0.5), wider: () => zoom(2) })) {
      const link = document.getElementById(id);
      if (link) link.onclick = (event) => {
        event.preventDefault();
        if (plots.length) act();
        else location.assign(link.href);
      };
    }
    root.dataset.charts = "drawn";
  };
})();
