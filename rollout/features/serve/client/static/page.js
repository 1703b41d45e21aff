// The page of a run: the map of racks, the table of nodes, and the parts that the server renders anew.
// Text is only ever inserted as text; the parts are markup that the server has escaped.
"use strict";

// Of every page: times as people here read them with UTC as their title, buttons that copy a command, links to what is folded.

const times = (() => {
  const EVERY = 30000; // milliseconds
  const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });
  const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

  function words(at, now) {
    const seconds = Math.round((at - now) / 1000), far = Math.abs(seconds);
    const [unit, length] = units.find(([, least]) => far >= least) || units[3];
    const local = day.format(at) === day.format(now) ? clock.format(at) : `${day.format(at)}, ${clock.format(at)}`;
    return `${local} (${relative.format(Math.trunc(seconds / length), unit)})`;
  }

  function show(place) {
    for (const each of place.querySelectorAll("time[datetime]")) {
      const said = words(new Date(each.dateTime), new Date());
      if (each.textContent !== said) each.textContent = said;
    }
  }

  setInterval(() => show(document), EVERY);
  show(document);
  return { show };
})();

document.addEventListener("click", (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const command = button.parentElement.querySelector("code").textContent;
  navigator.clipboard.writeText(command).then(() => "Copied", () => "Select it").then((said) => {
    button.textContent = said;
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
});

function unfold() {
  const found = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (found && found.nodeName === "DETAILS") found.open = true;
}
addEventListener("hashchange", unfold);
unfold();

let printed = []; // what was folded before the page was printed
addEventListener("beforeprint", () => {
  printed = [...document.querySelectorAll("details:not([open])")];
  for (const each of printed) each.open = true;
});
addEventListener("afterprint", () => { for (const each of printed) each.open = false; });

// "/" leads to the filter of a page, wherever the focus is, but not from a field that takes text.
document.addEventListener("keydown", (event) => {
  const field = document.querySelector("input[type=search]");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !field) return;
  if (event.target.closest("input, select, textarea")) return;
  event.preventDefault();
  field.focus();
});

(() => {
  const run = document.body.dataset.run;
  if (!run) return;
  const byId = (id) => document.getElementById(id);
  const SIDE = 11, STEP = 13, ACROSS = 12, SPARE = 8;
  const narrow = matchMedia("(max-width: 40rem)");
  const height = () => (narrow.matches ? 62 : 28); // of a row of the table: see page.css
  const SLICE = 8, MANY = 500; // milliseconds, and nodes, after which a key or a click may come between
  const nodes = new Map(); // name -> {name, rack, wave, state, message, charged, owed, low}
  const racks = new Map(); // key -> {key, label, names, button, counts, canvas, stale}
  const filter = { rack: "", text: "", state: "" };
  const order = [];
  let states = {}, charged = "", waves = [], shown = [], queued = false;

  // The stream. A browser connects again by itself only while the server does not answer: after a refusal the page does.

  const AGAIN = 3000; // milliseconds
  let stream = null, laid = false;

  function connect() {
    const mine = stream = new EventSource(`../runs/${encodeURIComponent(run)}/stream`);
    mine.onmessage = (event) => take(JSON.parse(event.data));
    mine.addEventListener("trouble", (event) => standing(`the journal cannot be read: ${event.data}`, true));
    mine.onerror = () => {
      const refused = mine.readyState === EventSource.CLOSED;
      standing("connection lost: this page is not up to date; it connects again by itself", true);
      if (!refused) return;
      setTimeout(() => { if (mine === stream) connect(); }, AGAIN);
      fetch("../static/icon.svg", { method: "HEAD" }).then((answer) => {
        if (mine !== stream) return;
        const why = answer.status === 401 ? "was started again: open the address that it printed" : "does not show the run now: this page tries again";
        standing(`this page is not up to date: the server ${why}`, true);
      }, () => {});
    };
  }

  connect();
  addEventListener("pagehide", () => { stream.close(); stream = null; });
  addEventListener("pageshow", (event) => { if (event.persisted) connect(); }); // the browser's back button shows the page as it was left

  function take(found) {
    if (found.layout && !laid) layout(found.layout); // a run has one layout, whichever server sends it
    if (found.nodes) update(found.nodes);
    for (const [name, text] of Object.entries(found.parts || {})) soon(() => replace(name, text));
    soon(() => standing(found.standing, found.standing === "no controller"));
    soon(() => { if (document.title !== found.title) document.title = found.title; });
  }

  // Jobs, in their order and in short slices.

  const jobs = [];

  function soon(job) {
    jobs.push(job);
    if (jobs.length === 1) setTimeout(slice);
  }

  function slice() {
    const end = performance.now() + SLICE;
    try {
      while (jobs.length && performance.now() < end) jobs.shift()();
    } finally {
      if (jobs.length) setTimeout(slice);
    }
  }

  function standing(words, broken) {
    const place = byId("standing");
    if (place.textContent !== words) place.textContent = words;
    place.classList.toggle("broken", broken);
  }

  // What is rendered anew. An element that is still wanted stays the same one: with its focus, what is typed into it and
  // what is selected in it, and a click on it that has begun.

  const forms = new Map(); // action -> the form that a person may have typed into, on the page or not

  function replace(name, text) {
    const place = document.querySelector(`[data-part="${name}"]`);
    if (!place) return;
    const fresh = document.createElement("template");
    fresh.innerHTML = text;
    times.show(fresh.content);
    for (const form of place.querySelectorAll("form")) forms.set(action(form), form);
    merge(place, fresh.content);
  }

  function action(each) {
    return each.nodeName === "FORM" ? each.getAttribute("action") : undefined;
  }

  function merge(place, fresh) {
    const old = new Map([...place.childNodes].map((each) => [each, each.outerHTML || each.data]));
    const claim = (fits) => {
      const found = [...old.keys()].find(fits);
      old.delete(found);
      return found;
    };
    const wanted = [...fresh.childNodes];
    const same = wanted.map((each) => claim((other) => old.get(other) === (each.outerHTML || each.data) && other.nodeType === each.nodeType));
    settle(place, wanted.map((each, at) => {
      const kept = same[at] || claim((other) => other.nodeName === each.nodeName && action(other) === action(each)) || forms.get(action(each));
      return kept ? become(kept, each) : each;
    }));
  }

  function become(old, fresh) {
    if (old.isEqualNode(fresh)) return old;
    if (old.nodeType !== Node.ELEMENT_NODE) {
      old.data = fresh.data;
      return old;
    }
    if (old instanceof SVGElement) return fresh;
    const folded = old.nodeName === "DETAILS"; // a person has opened or closed it
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !(folded && name === "open")) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    merge(old, fresh);
    return old;
  }

  // The element that has the focus is never moved: that would take the focus from it.
  function settle(place, wanted) {
    for (const each of [...place.childNodes]) if (!wanted.includes(each)) each.remove();
    if (!wanted.length) return;
    const still = Math.max(0, wanted.findIndex((each) => each.contains(document.activeElement)));
    if (wanted[still].parentNode !== place) place.prepend(wanted[still]);
    for (let at = still - 1; at >= 0; at--) if (wanted[at].nextSibling !== wanted[at + 1]) place.insertBefore(wanted[at], wanted[at + 1]);
    for (let at = still + 1; at < wanted.length; at++) if (wanted[at - 1].nextSibling !== wanted[at]) place.insertBefore(wanted[at], wanted[at - 1].nextSibling);
  }

  // The map: a button for each rack, a square for each node.

  function layout(found) {
    const place = byId("racks");
    laid = true;
    soon(() => ({ states, charged, waves } = found));
    let last = null;
    for (const [zone, name, names] of found.racks) {
      const title = zone !== last ? zone : "";
      last = zone;
      soon(() => add(place, title, `${zone}/${name}`, name, names));
    }
    soon(choose);
  }

  function add(place, zone, key, name, names) {
    if (zone) {
      const title = document.createElement("h3");
      title.textContent = `zone ${zone}`;
      place.append(title);
    }
    const rack = cell(key, name, names);
    place.append(rack.button);
    for (const node of names) {
      nodes.set(node, { name: node, rack, wave: "", state: "pending", message: "", charged: 0, owed: 0, low: node.toLowerCase() });
      order.push(node);
    }
  }

  function cell(key, name, names) {
    const button = document.createElement("button");
    const title = document.createElement("b"), counts = document.createElement("span");
    const canvas = document.createElement("canvas");
    const ratio = window.devicePixelRatio || 1;
    const width = ACROSS * STEP, height = Math.ceil(names.length / ACROSS) * STEP;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    // sizes by attribute would be those of the screen's dots
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.getContext("2d").scale(ratio, ratio);
    canvas.setAttribute("aria-hidden", "true");
    button.type = "button";
    button.className = "cell";
    button.setAttribute("aria-pressed", "false");
    title.textContent = name;
    button.append(title, counts, canvas);
    const rack = { key, name, names, button, counts, canvas, stale: true };
    canvas.addEventListener("click", (event) => {
      const at = Math.floor(event.offsetY / STEP) * ACROSS + Math.floor(event.offsetX / STEP);
      if (event.detail && names[at]) {
        event.stopPropagation();
        only({ rack: "", text: names[at], state: "" });
      }
    });
    button.addEventListener("click", () => only({ ...filter, rack: filter.rack === key ? "" : key }));
    racks.set(key, rack);
    return rack;
  }

  function update(rows) {
    const touched = new Set();
    for (let at = 0; at < rows.length; at += MANY) soon(() => rows.slice(at, at + MANY).forEach((row) => change(row, touched)));
    soon(() => {
      for (const rack of touched) soon(() => count(rack));
      soon(choose);
    });
  }

  function change([name, wave, state, message, wrong, owed], touched) {
    const node = nodes.get(name);
    if (!node) return;
    Object.assign(node, { wave: waves[wave], state, message, charged: wrong, owed });
    node.low = `${name} ${message}`.toLowerCase();
    node.rack.stale = true;
    touched.add(node.rack);
  }

  function count(rack) {
    const counts = new Map();
    let wrong = false;
    for (const name of rack.names) {
      const node = nodes.get(name);
      counts.set(node.state, (counts.get(node.state) || 0) + 1);
      wrong = wrong || node.charged > 0;
    }
    rack.counts.textContent = Object.keys(states).filter((state) => counts.has(state)).map((state) => `${counts.get(state)} ${state}`).join(", ");
    rack.button.classList.toggle("wrong", wrong);
  }

  // Colours are those of the style sheet, read again when it turns dark or light.

  let colours = {};
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => { colours = {}; redraw(); });
  addEventListener("beforeprint", () => { [...racks.values()].forEach(paint); draw(); });

  function colour(name) {
    colours[name] = colours[name] || getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    return colours[name];
  }

  byId("map").open = matchMedia("(min-width: 60rem)").matches;
  byId("map").addEventListener("toggle", later);
  narrow.addEventListener("change", later);

  function redraw() {
    for (const rack of racks.values()) rack.stale = true;
    draw();
  }

  function paint(rack) {
    const canvas = rack.canvas.getContext("2d");
    canvas.clearRect(0, 0, ACROSS * STEP, rack.canvas.height);
    canvas.font = "bold 9px system-ui, sans-serif";
    canvas.textAlign = "center";
    rack.names.forEach((name, at) => {
      const node = nodes.get(name), [kind, sign] = states[node.state];
      const x = (at % ACROSS) * STEP, y = Math.floor(at / ACROSS) * STEP;
      canvas.fillStyle = colour(kind);
      canvas.fillRect(x, y, SIDE, SIDE);
      if (node.charged) {
        canvas.strokeStyle = colour("wrong");
        canvas.lineWidth = 2;
        canvas.strokeRect(x + 1, y + 1, SIDE - 2, SIDE - 2);
      }
      canvas.fillStyle = kind === "pending" || kind === "skipped" ? colour("ink") : "#fff";
      canvas.fillText(node.charged && node.state === "reverted" ? charged : sign, x + SIDE / 2, y + 9);
    });
    rack.stale = false;
  }

  // The table: all nodes can be searched, only those in its window are drawn.

  const view = byId("window"), rows = byId("rows"), above = room(), below = room();
  view.addEventListener("scroll", later);
  byId("search").addEventListener("input", (event) => only({ ...filter, text: event.target.value.trim() }));
  byId("state").addEventListener("change", (event) => only({ ...filter, state: event.target.value }));
  byId("all").addEventListener("click", () => only({ rack: "", text: "", state: "" }));

  function only(wanted) {
    Object.assign(filter, wanted);
    if (byId("search").value.trim() !== filter.text) byId("search").value = filter.text;
    byId("state").value = filter.state;
    for (const rack of racks.values()) rack.button.setAttribute("aria-pressed", String(rack.key === filter.rack));
    view.scrollTop = 0;
    choose();
  }

  function choose() {
    const words = filter.text.toLowerCase();
    const found = order.filter((name) => {
      const node = nodes.get(name);
      return (!filter.rack || node.rack.key === filter.rack) && (!filter.state || node.state === filter.state) && node.low.includes(words);
    });
    const wrong = (name) => nodes.get(name).charged > 0;
    shown = [...found.filter(wrong), ...found.filter((name) => !wrong(name))]; // the culprits first
    const rack = filter.rack ? ` in ${racks.get(filter.rack).name}` : "";
    const words_ = `${shown.length.toLocaleString("en")} of ${order.length.toLocaleString("en")} nodes${rack}`;
    if (byId("found").textContent !== words_) byId("found").textContent = words_;
    later();
  }

  function later() {
    if (queued) return;
    queued = true;
    (document.hidden ? (call) => setTimeout(call, 1000) : requestAnimationFrame)(() => { queued = false; draw(); });
  }

  function draw() {
    const end = performance.now() + SLICE;
    for (const rack of byId("map").open ? racks.values() : []) {
      if (rack.stale && performance.now() > end) { later(); break; }
      if (rack.stale) paint(rack);
    }
    const row = height();
    const first = Math.max(0, Math.floor(view.scrollTop / row) - SPARE);
    const last = Math.min(shown.length, first + Math.ceil(view.clientHeight / row) + 2 * SPARE);
    const focused = rows.contains(document.activeElement);
    const drawn = new Map([...rows.children].map((row) => [row.dataset.node, row]));
    const lines = shown.slice(first, last).map((name, at) => {
      const row = line(nodes.get(name), first + at);
      return drawn.has(name) ? become(drawn.get(name), row) : row;
    });
    rows.parentElement.setAttribute("aria-rowcount", String(shown.length + 1));
    settle(rows, [fit(above, first), ...lines, fit(below, shown.length - last)]);
    if (focused && !rows.contains(document.activeElement)) view.focus({ preventScroll: true });
  }

  function room() {
    const row = document.createElement("tr"), inside = document.createElement("td");
    row.setAttribute("aria-hidden", "true");
    inside.colSpan = 5;
    inside.className = "room";
    row.append(inside);
    return row;
  }

  function fit(row, count) {
    row.firstChild.style.height = `${count * height()}px`;
    row.hidden = count === 0;
    return row;
  }

  function line(node, at) {
    const row = document.createElement("tr"), link = document.createElement("a");
    row.dataset.node = node.name;
    row.setAttribute("aria-rowindex", String(at + 2));
    link.href = `../runs/${encodeURIComponent(run)}/nodes/${encodeURIComponent(node.name)}`;
    link.textContent = node.name;
    const sign = (node.charged && node.state === "reverted" ? charged : states[node.state][1]) || "✓";
    const state = `${sign} ${node.state}${node.owed ? ", pending recovery" : ""}`;
    for (const part of [link, node.rack.name, node.wave, state, node.message]) {
      const inside = document.createElement("td");
      inside.append(part);
      inside.title = typeof part === "string" ? part : node.name;
      row.append(inside);
    }
    return row;
  }
})();
