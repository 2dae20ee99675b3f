"use strict";
// Draws the charts, one after the other so that the page answers meanwhile, and again when the
// theme or the width changes or the page is printed. uPlot keeps axes, zoom and pointer; what the
// traces hold is drawn here.
(() => {
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const charts = [...document.querySelectorAll(".chart")];
  const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
  const DASHES = { dash: [6, 4], dot: [2, 3], dashdot: [6, 3, 2, 3] };

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

  // "var(--name)" and "var(--name) 20%" as colours that a canvas can read.
  const style = getComputedStyle(root);
  const colour = (text) => {
    const match = /^var\((--[a-z0-9-]+)\)(?: (\d+)%)?$/.exec(text || "var(--muted)");
    const hex = style.getPropertyValue(match[1]).trim();
    if (!match[2]) return hex;
    return `rgba(${parts(hex).join(",")},${match[2] / 100})`;
  };
  const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const heat = (share) => {
    const at = Math.min(Math.max(share, 0), 1) * 4;
    const low = Math.min(Math.floor(at), 3);
    const [a, b] = [low, low + 1].map((i) => parts(style.getPropertyValue(`--heat-${i}`).trim()));
    return `rgb(${a.map((from, i) => Math.round(from + (b[i] - from) * (at - low))).join(",")})`;
  };

  const number = (value) => Number(value.toPrecision(4)).toLocaleString("en");
  const element = (name, parent, kind, text) => {
    const one = parent.appendChild(document.createElement(name));
    if (kind) one.className = kind;
    if (text !== undefined) one.textContent = text;
    return one;
  };

  // Places of an axis as numbers.
  const placer = (axis, all) => {
    if (axis.scale === "category") {
      axis.texts = [...new Set(all)];
      axis.ticks = axis.texts.map((_, i) => i);
      axis.range = [-0.5, axis.texts.length - 0.5];
      return (place) => axis.texts.indexOf(place);
    }
    if (axis.scale === "date") {
      return (place) => (place === null ? null : Date.parse(`${place.replace(" ", "T")}Z`) / 1e3);
    }
    return (place) => (typeof place === "string" ? Number(place) : place);
  };
  const extent = (axis, values, padded) => {
    const log = axis.scale === "log";
    if (axis.range) return log ? axis.range.map((power) => 10 ** power) : axis.range;
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value === null || !Number.isFinite(value) || (log && value <= 0)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (low > high) [low, high] = log ? [1, 10] : [0, 1];
    if (log) {
      const room = Math.max(Math.log10(high / low) * 0.05, 0.05);
      return [low / 10 ** room, high * 10 ** room];
    }
    if (axis.from_zero) return [Math.min(low, 0), high > 0 ? high * 1.06 : 1];
    const room = padded ? (high - low) * 0.06 || Math.abs(high) * 0.1 || 1 : high > low ? 0 : 1;
    return [low - room, high + room];
  };

  // A figure with its places as numbers; the document itself stays as it came.
  const prepare = (figure) => {
    const layout = { ...figure.layout, x: { ...figure.layout.x }, y: { ...figure.layout.y } };
    const x = placer(layout.x, figure.data.flatMap((trace) => trace.x));
    const y = placer(layout.y, figure.data.flatMap((trace) => trace.y));
    const data = figure.data.map((trace) => ({
      ...trace, px: trace.x.map(x), py: trace.y.map(y), mode: trace.mode || "",
    }));
    const reach = (axis, key, error) =>
      data.flatMap((trace) => {
        const values = trace[key];
        const beyond = trace[error];
        if (!beyond) return values;
        return values.flatMap((value, i) => [value - beyond.down[i], value, value + beyond.up[i]]);
      });
    const edges = (layout.shapes || []).flatMap((one) => [one.y0, one.y1]);
    const heights = edges.filter((place) => place !== undefined).map(y);
    const dots = data.some((trace) => trace.mode.includes("markers"));
    return {
      data, layout, x, y,
      rx: extent(layout.x, reach(layout.x, "px", "error_x"), dots),
      ry: extent(layout.y, [...reach(layout.y, "py", "error_y"), ...heights], dots && !data[0].z),
    };
  };

  // Times of day, every `step` seconds, with the date below the first of each day.
  const times = (splits, step) => {
    let day = "";
    return splits.map((at) => {
      const [date, time] = new Date(at * 1e3).toISOString().split("T");
      const text = time.slice(0, step < 1 ? 12 : step < 60 ? 8 : 5);
      if (date === day) return text;
      day = date;
      return step < 86400 ? `${text}\n${date}` : date;
    });
  };

  const axes = (layout, width) => {
    const measure = document.createElement("canvas").getContext("2d");
    measure.font = FONT;
    const common = (axis) => ({
      stroke: colour("var(--muted)"), font: FONT, labelFont: FONT, label: axis.title || undefined,
      labelSize: 18, grid: { show: axis.grid !== false, stroke: colour("var(--grid)"), width: 1 },
      ticks: { stroke: colour("var(--grid)"), width: 1, size: 5 },
    });
    const ticked = (axis, fits) => {
      const one = common(axis);
      if (axis.ticks) {
        one.splits = (u, i, low, high) => axis.ticks.filter((at) => at >= low && at <= high);
        one.filter = (u, splits) => splits;
        one.values = (u, splits) => fits(u, splits, splits.map((at) => axis.texts[axis.ticks.indexOf(at)]));
      } else if (axis.scale !== "date") {
        one.values = (u, splits) => fits(u, splits, splits.map((at) => (at === null ? "" : number(at))));
      }
      if (axis.whole) one.incrs = [1, 2, 5, 10, 20, 50, 100];
      return one;
    };
    const wide = (text) => Math.max(...text.split("\n").map((line) => measure.measureText(line).width));
    // Texts that would be printed over each other are left out, or cut to the room there is.
    const apart = (u, splits, texts) => {
      let end = -Infinity;
      return texts.map((text, i) => {
        if (!text) return text;
        const half = wide(text) / 2 + 3;
        const at = u.valToPos(splits[i], "x");
        if (at - half < end) return "";
        end = at + half;
        return text;
      });
    };
    const cut = (text, room) => {
      if (wide(text) <= room) return text;
      let short = text;
      while (short && wide(`${short}…`) > room) short = short.slice(0, -1);
      return `${short}…`;
    };
    const shared = (u, splits, texts) => {
      const [first, next] = splits.length > 1 ? splits : [u.scales.x.min, u.scales.x.max];
      const each = u.valToPos(next, "x") - u.valToPos(first, "x") - 6;
      return texts.map((text) => text && cut(text, each));
    };
    const room = Math.max(width * 0.38, 60);
    const isNamed = layout.x.texts && layout.x.scale !== "log";
    const x = { ...ticked(layout.x, isNamed ? shared : apart), size: 30 };
    if (layout.x.scale === "date") {
      const dated = (u, splits, axis, space, step) => apart(u, splits, times(splits, step));
      Object.assign(x, { values: dated, size: 44, space: 72 });
    }
    const y = {
      ...ticked(layout.y, (u, splits, texts) => texts.map((text) => text && cut(text, room))),
      size: (u, texts) => {
        const widths = (texts || []).map((text) => wide(text || ""));
        return Math.ceil(Math.max(20, ...widths)) + 12;
      },
    };
    return [x, y];
  };

  // Drawing on uPlot's canvas, in its pixels.
  const painter = (u, model) => {
    const c = u.ctx;
    const ratio = devicePixelRatio;
    const { left, top, width, height } = u.bbox;
    const X = (value) => u.valToPos(value, "x", true);
    const Y = (value) => u.valToPos(value, "y", true);
    const font = (size) => (c.font = FONT.replace("11px", `${(size || 11) * ratio}px`));
    const stroke = (line, plain) => {
      c.strokeStyle = colour(line.color || plain);
      c.lineWidth = (line.width ?? 2) * ratio;
      c.setLineDash((DASHES[line.dash] || []).map((part) => part * ratio));
    };

    const path = (trace) => {
      c.beginPath();
      let before = null;
      trace.px.forEach((place, i) => {
        const value = trace.py[i];
        if (value === null || place === null || Number.isNaN(value)) return void (before = null);
        const [x, y] = [X(place), Y(value)];
        if (before === null) c.moveTo(x, y);
        else {
          // The lower edge of an area is drawn from its end: there a step is upright first.
          if (trace.line?.shape === "hv") c.lineTo(...(x < before[0] ? [before[0], y] : [x, before[1]]));
          c.lineTo(x, y);
        }
        before = [x, y];
      });
    };
    // The space between two lines of the same places: a box or a slope for each part where both are known.
    const between = (upper, lower) => {
      c.beginPath();
      for (let i = 0; i + 1 < upper.px.length; i += 1) {
        const [a, b] = [upper.py[i], lower.py[i]];
        if (a === null || b === null) continue;
        const steps = upper.line?.shape === "hv";
        const [c2, d2] = steps ? [a, b] : [upper.py[i + 1], lower.py[i + 1]];
        if (c2 === null || d2 === null) continue;
        c.moveTo(X(upper.px[i]), Y(a));
        c.lineTo(X(upper.px[i + 1]), Y(c2));
        c.lineTo(X(upper.px[i + 1]), Y(d2));
        c.lineTo(X(upper.px[i]), Y(b));
        c.closePath();
      }
    };
    const sign = (trace, x, y) => {
      const size = ((trace.marker?.size || 6) / 2) * ratio;
      const look = colour(trace.marker?.color || trace.line?.color);
      const kind = trace.marker?.symbol || "circle";
      c.beginPath();
      if (kind === "tick") {
        c.moveTo(x, y - size);
        c.lineTo(x, y + size);
      } else if (kind === "diamond-open") {
        c.moveTo(x, y - size);
        [[size, 0], [0, size], [-size, 0]].forEach(([dx, dy]) => c.lineTo(x + dx, y + dy));
        c.closePath();
      } else c.arc(x, y, size, 0, 2 * Math.PI);
      c.fillStyle = c.strokeStyle = look;
      c.lineWidth = 1.5 * ratio;
      c.setLineDash([]);
      if (kind === "circle") c.fill();
      else c.stroke();
    };
    const whiskers = (trace, error, along) => {
      stroke({ color: error.color, width: error.width });
      trace.px.forEach((place, i) => {
        const [low, high] = [-error.down[i], error.up[i]];
        const from = along === "x" ? [X(place + low), Y(trace.py[i])] : [X(place), Y(trace.py[i] + low)];
        const to = along === "x" ? [X(place + high), Y(trace.py[i])] : [X(place), Y(trace.py[i] + high)];
        c.beginPath();
        c.moveTo(...from);
        c.lineTo(...to);
        c.stroke();
      });
    };
    const labels = (trace) => {
      font(trace.label_size);
      c.fillStyle = colour("var(--ink)");
      const [up, side] = (trace.side || "top center").split(" ");
      c.textAlign = { left: "right", right: "left", center: "center" }[side];
      c.textBaseline = up === "top" ? "bottom" : "top";
      const gap = 7 * ratio;
      const dx = { left: -gap / 2, right: gap / 2, center: 0 }[side];
      trace.labels.forEach((text, i) => {
        c.fillText(text, X(trace.px[i]) + dx, Y(trace.py[i]) + (up === "top" ? -gap : gap));
      });
    };
    const cells = (trace) => {
      const [xs, ys] = [edges(trace.px, trace.z[0].length), edges(trace.py, trace.z.length)];
      const gap = (trace.gap || 0) * ratio;
      trace.z.forEach((row, j) => {
        const [y0, y1] = [Y(ys[j + 1]), Y(ys[j])];
        row.forEach((value, i) => {
          if (value === null) return;
          const [x0, x1] = [X(xs[i]), X(xs[i + 1])];
          c.fillStyle = heat((value - trace.zmin) / (trace.zmax - trace.zmin));
          // Cells that touch overlap a little: else their seams are seen.
          const over = gap ? -gap : 0.6;
          c.fillRect(x0 + gap / 2, y0 + gap / 2, x1 - x0 + over, y1 - y0 + over);
        });
      });
    };
    const shape = (one) => {
      const x = [one.x0, one.x1].map((place, i) => (place === undefined ? left + i * width : X(model.x(place))));
      const y = [one.y0, one.y1].map((place, i) => (place === undefined ? top + i * height : Y(model.y(place))));
      if (one.kind === "rect") {
        c.fillStyle = colour(one.fill);
        c.fillRect(Math.min(...x), Math.min(...y), Math.abs(x[1] - x[0]), Math.abs(y[1] - y[0]));
      } else {
        c.beginPath();
        c.moveTo(x[0], y[0]);
        c.lineTo(x[1], y[1]);
        if (heats.length) {
          // On a ground of its own: the dark colours of a map would hide it.
          stroke({ color: "var(--surface) 75%", width: 3 });
          c.stroke();
        }
        stroke(one.line || {});
        c.stroke();
      }
    };
    const note = (one) => {
      font(one.size);
      const step = 14 * ratio;
      const x = X(model.x(one.x));
      const lines = one.text.split("\n");
      c.textBaseline = one.y === undefined ? "top" : "middle";
      c.textAlign = one.anchor || "center";
      const dx = { left: 3, right: -3 }[one.anchor] || 0;
      lines.forEach((line, i) => {
        const y = one.y === undefined
          ? top + 2 * ratio + (one.row || 0) * step
          : Y(model.y(one.y)) + (i - (lines.length - 1) / 2) * step * 0.85;
        if (one.y === undefined) {
          // On its own ground: a name is read over lines and colours too.
          const wide = c.measureText(line).width + 4 * ratio;
          c.fillStyle = colour("var(--surface) 75%");
          c.fillRect(one.anchor === "right" ? x - wide - ratio : x + ratio, y - ratio, wide, step);
        }
        c.fillStyle = colour(one.color || "var(--ink)");
        c.fillText(line, x + dx * ratio, y);
      });
    };

    c.save();
    c.beginPath();
    c.rect(left, top, width, height);
    c.clip();
    const shapes = model.layout.shapes || [];
    const heats = model.data.filter((trace) => trace.z);
    heats.forEach(cells);
    shapes.filter((one) => one.kind === "rect").forEach(shape);
    model.data.forEach((trace, nth) => {
      if (trace.z || trace.off) return;
      if (trace.fill === "self") {
        path({ ...trace, line: { shape: "hv" } });
        c.fillStyle = colour(trace.fill_color);
        c.fill();
        return;
      }
      if (trace.fill === "previous") {
        between(trace, model.data[nth - 1]);
        c.fillStyle = colour(trace.fill_color);
        c.fill();
      }
      if (trace.error_x) whiskers(trace, trace.error_x, "x");
      if (trace.error_y) whiskers(trace, trace.error_y, "y");
      if (trace.mode.includes("lines")) {
        stroke(trace.line || {});
        path(trace);
        c.stroke();
      }
      if (trace.mode.includes("markers")) {
        trace.px.forEach((place, i) => trace.py[i] !== null && sign(trace, X(place), Y(trace.py[i])));
      }
    });
    shapes.filter((one) => one.kind === "line").forEach(shape);
    (model.layout.annotations || []).forEach(note);
    c.restore();
    c.save();
    model.data.forEach((trace) => trace.labels && !trace.off && labels(trace));
    c.restore();
  };
  // Edges of cells: given, or half way to the neighbours.
  const edges = (places, cells) =>
    places.length > cells ? places : [...places, places[places.length - 1] + 1].map((at) => at - 0.5);

  // A place in words: a time without the milliseconds that it has not.
  const spoken = (axis, place) => (axis.scale === "date" ? place.replace(/\.000$/, "") : place);
  // What the pointer is on, in words.
  const words = (model, trace, i, j) => {
    const texts = trace.z ? trace.texts?.[j]?.[i] ?? number(10 ** trace.z[j][i]) : trace.text?.[i];
    const axisWord = (key, format) => {
      const at = key === "x" ? i : trace.z ? j : i;
      const value = trace[key][at];
      if (typeof value === "string") return spoken(model.layout[key], value);
      if (value === null) return "";
      if (format === ".3s") {
        const [scale, unit] = value < 1e-3 ? [1e6, " µ"] : value < 1 ? [1e3, " m"] : [1, " "];
        return `${Number((value * scale).toPrecision(3))}${unit}`;
      }
      if (format === ".1f") return value.toFixed(1);
      if (format === ",.0f") return Math.round(value).toLocaleString("en");
      return number(value);
    };
    const template = trace.hover || "%{y}";
    const said = template.replace(/%\{(\w+)(?::([^}]*))?\}/g, (_, key, format) =>
      key === "text" ? texts ?? "" : axisWord(key, format));
    return trace.name && !trace.nameless && !trace.z ? `${trace.name}: ${said}` : said;
  };
  const under = (u, model) => {
    const { left, top } = u.cursor;
    if (left === null || left < 0) return [];
    const x = u.posToVal(left, "x");
    const y = u.posToVal(top, "y");
    const heats = model.data.find((trace) => trace.z);
    if (heats) {
      const at = (places, cells, value) => edges(places, cells).findLastIndex((edge) => edge <= value);
      const [i, j] = [at(heats.px, heats.z[0].length, x), at(heats.py, heats.z.length, y)];
      return typeof heats.z[j]?.[i] === "number" ? [words(model, heats, i, j)] : [];
    }
    const shown = model.data.filter((trace) => !trace.skip_hover && !trace.off);
    if (model.layout.hover === "closest") {
      let best = null;
      for (const trace of shown) {
        trace.px.forEach((place, i) => {
          if (trace.py[i] === null) return;
          const far = Math.hypot(u.valToPos(place, "x") - left, u.valToPos(trace.py[i], "y") - top);
          if (far < 30 && (!best || far < best.far)) best = { far, trace, i };
        });
      }
      return best ? [words(model, best.trace, best.i)] : [];
    }
    const lines = [];
    let place;
    for (const trace of shown) {
      // The step that the pointer is in, or the nearest point.
      const steps = trace.line?.shape === "hv";
      let found = -1;
      trace.px.forEach((at, i) => {
        if (steps ? at <= x : found < 0 || Math.abs(at - x) < Math.abs(trace.px[found] - x)) found = i;
      });
      if (found < 0 || trace.py[found] === null) continue;
      place ??= trace.x[found];
      lines.push(words(model, trace, found));
    }
    return lines.length ? [typeof place === "number" ? `at ${number(place)}` : spoken(model.layout.x, place), ...lines] : [];
  };

  const keys = (chart, model, redraw) => {
    const bar = model.data.find((trace) => trace.bar);
    if (!bar && !model.layout.legend) return;
    const legend = element("div", chart, "legend");
    if (bar) {
      const { title, ticks, texts } = bar.bar;
      element("span", legend, "", title);
      const scale = element("span", legend, "heat");
      const steps = [0, 0.25, 0.5, 0.75, 1].map(heat).join(",");
      scale.style.background = `linear-gradient(to right, ${steps})`;
      ticks.forEach((at, i) => {
        const share = (at - bar.zmin) / (bar.zmax - bar.zmin);
        if (share < 0 || share > 1) return;
        element("span", scale, "", texts[i]).style.left = `${share * 100}%`;
      });
      return;
    }
    for (const trace of model.data) {
      if (trace.hide_in_legend || !trace.name) continue;
      const item = element("button", legend, "key", "");
      item.type = "button";
      item.setAttribute("aria-pressed", "true");
      const line = element("i", item);
      line.style.color = colour(trace.line?.color || trace.marker?.color);
      const symbol = trace.marker?.symbol || "";
      line.className = trace.mode.includes("lines") ? trace.line?.dash || "solid" : `point ${symbol}`;
      item.append(trace.name);
      item.onclick = () => {
        trace.off = !trace.off;
        item.classList.toggle("off", trace.off);
        item.setAttribute("aria-pressed", String(!trace.off));
        for (const other of model.data) if (trace.group && other.group === trace.group) other.off = trace.off;
        redraw();
      };
    }
  };

  const plots = new Map();
  const draw = (chart) => {
    plots.get(chart)?.destroy();
    chart.replaceChildren();
    const model = prepare(figures[chart.dataset.figure]);
    const { layout } = model;
    if (layout.height) chart.style.height = `${layout.height + 24}px`;
    let u = null;
    keys(chart, model, () => u.redraw(false));
    const used = chart.firstChild ? chart.firstChild.offsetHeight : 0;
    const tip = element("div", chart, "tip");
    tip.hidden = true;
    const scale = (axis, range, isX) => ({
      time: axis.scale === "date", distr: axis.scale === "log" ? 3 : 1,
      range: isX ? (self, low, high) => [low, high] : () => range,
    });
    const width = Math.max(chart.clientWidth, 200);
    u = new uPlot({
      width, height: Math.max(chart.clientHeight - used, 120), padding: [8, layout.x.scale === "date" ? 34 : 20, 0, 0],
      legend: { show: false }, cursor: { points: { show: false }, y: layout.hover === "closest" },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
      scales: { x: scale(layout.x, model.rx, true), y: scale(layout.y, model.ry, false) },
      axes: axes(layout, width),
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: {
        draw: [(self) => painter(self, model)],
        setCursor: [(self) => {
          const lines = under(self, model);
          tip.hidden = !lines.length;
          tip.textContent = lines.join("\n");
          const beyond = self.cursor.left > self.over.clientWidth / 2;
          const from = self.over.offsetLeft + self.cursor.left;
          tip.style.left = beyond ? "" : `${from + 12}px`;
          tip.style.right = beyond ? `${chart.clientWidth - from + 12}px` : "";
          tip.style.top = `${used + 12}px`;
        }],
      },
    }, [model.rx, model.ry], chart);
    // The image is what is plotted; the keys beside it are buttons.
    u.root.setAttribute("role", "img");
    u.root.setAttribute("aria-label", chart.getAttribute("aria-label"));
    chart.setAttribute("role", "group");
    plots.set(chart, u);
  };
  const drawAll = () => charts.forEach(draw);

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("beforeprint", () => {
    root.classList.add("printing");
    drawAll();
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    drawAll();
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width || root.classList.contains("printing")) return;
    width = innerWidth;
    drawAll();
  });

  const next = (i) => {
    if (i < charts.length) {
      draw(charts[i]);
      setTimeout(next, 0, i + 1);
    } else if (!root.dataset.charts) {
      root.dataset.charts = "drawn";
    }
  };
  next(0);
})();
