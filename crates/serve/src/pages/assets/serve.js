"use strict";
// Pages are complete without this script. It writes times in the reader's zone, keeps a page current, and says when
// the server does not answer. `serveCharts` of charts.js draws the charts of a view.
(() => {
  const root = document.documentElement;
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const put = (node, text) => {
    if (node && node.textContent !== text) node.textContent = text;
  };
  root.classList.add("js");

  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  // The form of ISO 8601, which is the one that Sweden uses.
  const clock = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
  const localise = (within) => {
    for (const time of all("time[datetime]", within)) {
      put(time, clock.format(new Date(time.dateTime)));
      time.title = `${zone}; ${time.dateTime}`;
    }
    put(one("#zone"), `Times in ${zone}`);
  };

  const state = (kind, text) => {
    const status = one("#status");
    root.dataset.server = kind;
    if (status) {
      status.className = kind;
      put(status, text);
    }
  };
  const lost = () => state("lost", "Connection lost; trying again");

  // Takes the page anew and puts its main part in the place of this one, with what the reader has opened and where
  // the focus was.
  const LONGEST = 20_000;
  let latest = 0;
  const refresh = async () => {
    const turn = (latest += 1);
    const url = location.href;
    let answer;
    let text;
    try {
      answer = await fetch(url, { headers: { accept: "text/html" }, signal: AbortSignal.timeout(LONGEST) });
      if (answer.redirected && new URL(answer.url).pathname === "/sign-in") return void location.assign(answer.url);
      if (answer.status >= 500) throw new Error(answer.statusText);
      text = await answer.text();
    } catch {
      lost();
      return;
    }
    if (turn !== latest) return;
    const fresh = one("main", new DOMParser().parseFromString(text, "text/html"));
    if (!fresh) return lost();
    const opened = all("details").map((details) => details.open);
    const focus = document.activeElement?.id;
    one("main").replaceWith(document.adoptNode(fresh));
    begin();
    all("details").forEach((details, i) => (details.open = opened[i] ?? details.open));
    if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
    state("current", one("main").dataset.refresh ? "Current" : "");
  };

  const number = (value) =>
    Math.abs(value) < 99.95 ? value.toFixed(1) : Math.round(value).toLocaleString("en-US");
  const duration = (ms) => {
    const ns = Math.round(ms * 1e6);
    const units = [[1e6, 1e3, "µs"], [1e9, 1e6, "ms"], [120e9, 1e9, "s"], [7200e9, 60e9, "min"]];
    if (ns < 1e3) return `${ns} ns`;
    const [, unit, word] = units.find(([below]) => ns < below) ?? [0, 3600e9, "h"];
    const value = ns / unit;
    return `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${word}`;
  };
  const percent = (share) => `${Number((share * 100).toFixed(share < 0.0995 ? 1 : 0))} %`;
  const WORDS = {
    number, duration, percent,
    mib: (bytes) => number(bytes / 1048576),
  };
  const known = (word, value) => (value === null || value === undefined ? "–" : WORDS[word](value));

  // The page Now: figures in their cells, as they come. A host, disk or finding that is new or gone changes the
  // page, which is then taken anew.
  const PAST = 60;
  const past = new Map();
  const spark = (row, disk) => {
    const key = `${row.dataset.host}\n${disk.name}`;
    const values = past.get(key) || [];
    values.push((disk.read.iops || 0) + (disk.write.iops || 0));
    if (values.length > PAST) values.shift();
    past.set(key, values);
    const most = Math.max(...values, 1);
    const points = values.map((value, i) => `${PAST - values.length + i},${(15 - (14 * value) / most).toFixed(1)}`);
    one(".spark polyline", row)?.setAttribute("points", points.join(" "));
  };
  const fill = (node, figures) => {
    for (const cell of all("[data-key]", node)) {
      const value = cell.dataset.key.split(".").reduce((at, key) => at?.[key], figures);
      put(one(".figure", cell) || cell, known(cell.dataset.word, value));
      one("rect", cell)?.setAttribute("width", 100 * Math.min(value || 0, 1));
    }
  };
  const shape = (hosts) =>
    JSON.stringify(hosts.map(([host, ...lists]) => [host, ...lists.map((list) => list.sort())]).sort());
  const work = ({ array }) => (typeof array?.done_fraction === "number" ? array.action : "");
  const shown = () =>
    shape(all("section[data-host]").map((section) => [
      section.dataset.host,
      all("[data-disk]", section).map((row) => `${row.dataset.disk}\n${row.dataset.findings}\n${row.dataset.array}`),
      all("[data-finding]", section).map((finding) => finding.dataset.finding),
      [section.dataset.state],
    ]));
  const update = (now) => {
    const named = shape(now.hosts.map((host) => [
      host.hostname,
      host.disks.map((disk) => `${disk.name}\n${disk.findings.join(" ")}\n${work(disk)}`),
      host.findings.map((finding) => `${finding.code} ${finding.name}`),
      [host.state],
    ]));
    if (named !== shown()) return void refresh();
    const sections = new Map(all("section[data-host]").map((section) => [section.dataset.host, section]));
    for (const host of now.hosts) {
      const section = sections.get(host.hostname);
      fill(one(".identity", section), host);
      const disks = new Map(host.disks.map((disk) => [disk.name, disk]));
      for (const row of all("[data-disk]", section)) {
        const disk = disks.get(row.dataset.disk);
        fill(row, disk);
        spark(row, disk);
      }
      const findings = new Map(host.findings.map((one) => [`${one.code} ${one.name}`, one]));
      for (const item of all("[data-finding]", section)) {
        put(one(".evidence", item), findings.get(item.dataset.finding).text);
      }
    }
    const time = one("#now");
    time.dateTime = now.time;
    put(time, clock.format(new Date(now.time)));
  };

  // EventSource comes back by itself after an interruption, but not after an answer that is an error, nor where the
  // other end is gone without a word.
  const SILENCE = 40_000;
  const AGAIN = 3_000;
  let events = null;
  let watchdog = 0;
  const follow = () => {
    const again = () => {
      events?.close();
      events = null;
      clearTimeout(watchdog);
      setTimeout(async () => {
        await refresh();
        follow();
      }, AGAIN);
    };
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => {
        lost();
        again();
      }, SILENCE);
    };
    events = new EventSource("/api/v1/live");
    events.onopen = heard;
    events.addEventListener("now", (event) => {
      heard();
      state("current", "Live");
      update(JSON.parse(event.data));
    });
    events.onerror = () => {
      lost();
      if (events.readyState === EventSource.CLOSED) again();
    };
    heard();
  };

  // Times that the reader enters are in the zone of the reader; addresses have seconds since 1970.
  const local = (seconds) => {
    const at = new Date(seconds * 1000);
    return new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  };
  const choosing = () => {
    const form = one("form.controls[method=get]");
    for (const input of all("input[name=from], input[name=to]", form || document)) {
      input.value = input.dataset.seconds ? local(Number(input.dataset.seconds)) : "";
      input.type = "datetime-local";
      input.step = 1;
    }
    form?.addEventListener("formdata", ({ formData }) => {
      for (const [key, value] of [...formData]) {
        if (value === "") formData.delete(key);
        else if (key === "from" || key === "to") formData.set(key, Date.parse(value) / 1000);
      }
    });
  };

  const marking = () => {
    const form = one("#mark");
    form?.addEventListener("submit", async (event) => {
      event.preventDefault();
      const said = one("#said");
      const fields = Object.fromEntries(new FormData(form));
      const body = { text: fields.text };
      if (fields.hostname) body.hostname = fields.hostname;
      if (fields.time) body.time = new Date(fields.time).toISOString();
      try {
        const answer = await fetch(form.action, {
          method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
          signal: AbortSignal.timeout(LONGEST),
        });
        if (!answer.ok) return put(said, (await answer.json()).error);
        form.reset();
        await refresh();
        put(one("#said"), "The marker is set.");
      } catch {
        put(said, "The server does not answer; the marker is not set.");
        lost();
      }
    });
  };

  // Pages that follow what is recorded are taken anew while nobody writes into them; of others it is only seen
  // whether the server answers.
  const BEAT = 20;
  const beat = async () => {
    try {
      const answer = await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(LONGEST) });
      if (!answer.ok) throw new Error(answer.statusText);
      state("current", "");
    } catch {
      lost();
    }
  };
  const isEdited = () => document.activeElement?.matches("main input, main select");
  let timer = 0;
  const begin = () => {
    localise(document);
    choosing();
    marking();
    window.serveCharts?.(refresh, { number, duration, percent, clock });
    const period = Number(one("main").dataset.refresh || 0);
    clearInterval(timer);
    if (one("main").dataset.page === "now") return;
    timer = setInterval(() => {
      if (document.hidden) return;
      if (period && !isEdited()) refresh();
      else beat();
    }, 1000 * (root.dataset.server === "lost" ? AGAIN / 1000 : period || BEAT));
  };
  begin();
  if (one("main").dataset.page === "now") follow();
})();
