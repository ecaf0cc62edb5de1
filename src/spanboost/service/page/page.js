"use strict";
// Figures come once a second as server-sent events; nothing else is fetched.

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en");
const brief = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

function show(id, value, format = whole) {
  const place = byId(id);
  place.value = value === null ? "" : String(value);
  place.textContent = value === null ? "none" : format.format(value);
}

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Ticks at 1, 2 or 5 times a power of ten, about so many.
function ticks(low, high, count) {
  const rough = (high - low) / count;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++) found.push(k * step || 0);
  return found;
}

// What stands at an axis: classes, eight at most, in a few letters each; or numbers.
function marks([low, high], classes) {
  if (!classes.length) return ticks(low, high, 5).map((v) => [v, brief.format(v)]);
  const every = Math.ceil(classes.length / 8);
  const short = (name) => (name.length > 8 ? `${name.slice(0, 7)}…` : name);
  return classes.map((name, k) => [k, short(name)]).filter(([k]) => k % every === 0);
}

// A plane with axes: x and y give places for values, parts are what is drawn.
function plane(width, height, left, xs, ys, classes = []) {
  const bottom = height - 24, top = 10, right = width - 12;
  const span = ([low, high]) => (high > low ? high - low : 1);
  const x = (v) => left + ((v - xs[0]) / span(xs)) * (right - left);
  const y = (v) => bottom - ((Math.min(v, ys[1]) - ys[0]) / span(ys)) * (bottom - top);
  const parts = [];
  for (const [v, text] of marks(ys, classes)) {
    parts.push(element("line", { class: "grid", x1: left, x2: right, y1: y(v), y2: y(v) }));
    parts.push(element("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, text));
  }
  for (const [v, text] of marks(xs, classes)) {
    const last = x(v) + 7 * text.length > width;  // it might go beyond the edge
    const place = { x: last ? width : x(v), y: height - 6, "text-anchor": last ? "end" : "middle" };
    parts.push(element("text", place, text));
  }
  return { x, y, parts, top, bottom };
}

function path(points) {
  return points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
}

// Of sums so far at some rows: the average so far, and that since the point before.
function averages(curve) {
  const found = [];
  let weight = 0, loss = 0;
  for (const [rows, weights, losses] of curve) {
    if (weights === null || losses === null) continue;
    const running = weights > 0 ? losses / weights : null;
    const windowed = weights > weight ? (losses - loss) / (weights - weight) : null;
    if (running !== null) found.push({ rows, running, windowed });
    weight = weights;
    loss = losses;
  }
  return found;
}

function drawCurve(figures) {
  const points = averages(figures.curve);
  if (!points.length) return;
  const last = points[points.length - 1];
  // the first windows may be far off: the scale is for most of them
  const sorted = points.flatMap((p) => [p.running, p.windowed ?? p.running]).sort((a, b) => a - b);
  const most = sorted[Math.floor(0.97 * (sorted.length - 1))] * 1.1 || 1;
  const at = plane(760, 260, 64, [0, last.rows], [0, most]);
  for (const row of figures.drifts) {
    at.parts.push(element("line", { class: "mark", x1: at.x(row), x2: at.x(row), y1: at.top, y2: at.bottom }));
  }
  const line = (key) => path(points.filter((p) => p[key] !== null).map((p) => [at.x(p.rows), at.y(p[key])]));
  at.parts.push(element("path", { class: "line-windowed", d: line("windowed") }));
  at.parts.push(element("path", { class: "line-running", d: line("running") }));
  const curve = byId("curve");
  curve.replaceChildren(...at.parts);
  curve.setAttribute("aria-label",
    `Loss over ${whole.format(last.rows)} rows: ${brief.format(points[0].running)} at first, ` +
    `${brief.format(last.running)} on average now; the numbers are in the table below.`);
  if (byId("curve-table").closest("details").open) fillTable(points);
}

function fillTable(points) {
  const every = Math.max(1, Math.floor(points.length / 20));
  const rows = points.filter((_, k) => (points.length - 1 - k) % every === 0).map((p) => {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = whole.format(p.rows);
    row.append(head, ...[p.running, p.windowed].map((v) => {
      const cell = document.createElement("td");
      cell.textContent = v === null ? "none" : brief.format(v);
      return cell;
    }));
    return row;
  });
  byId("curve-table").replaceChildren(...rows);
}

function drawPairs({ pairs, classes }) {
  const good = pairs.filter(([a, b]) => a !== null && b !== null);
  if (!good.length) return;
  const [range, dots, said] = classes.length ? ofClasses(good, classes) : ofNumbers(good);
  const at = plane(370, 300, 56, range, range, classes);
  at.parts.push(element("line", { class: "same", x1: at.x(range[0]), y1: at.y(range[0]), x2: at.x(range[1]), y2: at.y(range[1]) }));
  for (const [prediction, truth, r] of dots) {
    at.parts.push(element("circle", { class: "dot", cx: at.x(truth), cy: at.y(prediction), r }));
  }
  at.parts.push(element("text", { x: 358, y: 270, "text-anchor": "end" }, "truth"));
  at.parts.push(element("text", { x: 62, y: 20 }, "prediction"));
  byId("pairs").replaceChildren(...at.parts);
  byId("pairs").setAttribute("aria-label", said);
}

function ofNumbers(pairs) {
  const all = pairs.flat();
  const low = Math.min(...all), high = Math.max(...all);
  const error = pairs.reduce((sum, [a, b]) => sum + Math.abs(a - b), 0) / pairs.length;
  return [
    high > low ? [low, high] : [low - 1, high + 1],
    pairs.map(([prediction, truth]) => [prediction, truth, 3.5]),
    `Predictions of the last ${pairs.length} rows against their labels, from ${brief.format(low)} to ` +
    `${brief.format(high)}; they differ by ${brief.format(error)} on average.`,
  ];
}

// Rows that agree in both are one dot, of an area by their number.
function ofClasses(pairs, classes) {
  const counts = new Map();
  for (const pair of pairs) counts.set(String(pair), (counts.get(String(pair)) ?? 0) + 1);
  const largest = Math.min(24, 120 / classes.length), most = Math.max(...counts.values());
  const dots = [...counts].map(([pair, n]) => [...pair.split(",").map(Number), 3 + largest * Math.sqrt(n / most)]);
  const right = pairs.filter(([prediction, truth]) => prediction === truth).length;
  return [
    [-0.5, classes.length - 0.5],
    dots,
    `Of the last ${pairs.length} rows ${right} were predicted as what they are, of ${classes.length} classes.`,
  ];
}

function drawWeights(weights) {
  const names = Object.keys(weights);
  byId("experts").hidden = !names.length;
  const place = byId("weights");
  if (place.children.length !== names.length) {
    place.replaceChildren(...names.map((name) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = name;
      const bar = document.createElement("progress");
      bar.max = 1;
      bar.setAttribute("aria-label", `weight of ${name}`);
      row.append(head, document.createElement("td"), document.createElement("td"));
      row.children[1].append(bar);
      return row;
    }));
  }
  names.forEach((name, k) => {
    const [, bar, text] = place.children[k].children;
    bar.firstChild.value = weights[name];
    text.textContent = `${(100 * weights[name]).toFixed(1)} %`;
  });
}

let before = null;

function rate(figures, key) {
  if (before === null || figures.time <= before.time) return null;
  return Math.max(0, Math.round((figures[key] - before[key]) / (figures.time - before.time)));
}

function update(figures) {
  for (const key of ["learned", "predicted", "pending", "waiting", "duplicates", "refused"]) {
    show(key, figures[key]);
  }
  show("loss", figures.loss, brief);
  show("recent_loss", figures.recent_loss, brief);
  show("learned-rate", rate(figures, "learned"));
  show("predicted-rate", rate(figures, "predicted"));
  drawCurve(figures);
  drawPairs(figures);
  drawWeights(figures.weights);
  const drifts = figures.drifts;
  byId("drifts").textContent = drifts.length
    ? `drift marked at row ${drifts.slice(-10).map((row) => whole.format(row)).join(", ")}`
    : "no drift so far";
  say(figures.trouble === null ? "live" : "trouble", figures.trouble ?? "live, once a second");
  before = figures;
}

// Said only when it changes: a screen reader should not have to hear it every second.
function say(state, text) {
  const status = byId("status");
  if (status.textContent !== text) status.textContent = text;
  status.dataset.state = state;
}

let source = null;

function listen() {
  source = new EventSource("events");
  source.onmessage = (event) => update(JSON.parse(event.data));
  source.onerror = () => say("trouble", "the service does not answer; trying again");
}

byId("pause").addEventListener("click", (event) => {
  const paused = event.target.getAttribute("aria-pressed") !== "true";
  event.target.setAttribute("aria-pressed", String(paused));
  event.target.textContent = paused ? "Go on" : "Pause";
  if (paused) {
    source.close();
    say("waiting", "paused");
  } else {
    listen();
  }
});

byId("curve-table").closest("details").addEventListener("toggle", () => {
  if (before !== null) fillTable(averages(before.curve));
});

listen();
