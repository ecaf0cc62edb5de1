"use strict";
// The metrics arrive once a second as server-sent events. The page fetches nothing else.

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const integers = new Intl.NumberFormat("en");
const decimals = withExponents({ maximumSignificantDigits: 4 });
const aligned = withExponents({ minimumSignificantDigits: 4, maximumSignificantDigits: 4 });

// Returns a format of numbers with four digits; one from 1e9 on has an exponent, such as 1.2e+300.
function withExponents(options) {
  const plain = new Intl.NumberFormat("en", options);
  const short = (value) => value.toExponential(3).replace(/\.?0+e/, "e");
  return { format: (value) => (Math.abs(value) < 1e9 ? plain.format(value) : short(value)) };
}

function number(value) {
  return value === null ? "n/a" : decimals.format(value);
}

function show(id, value, format = integers) {
  const data = byId(id);
  data.value = value === null ? "" : String(value);
  data.textContent = value === null ? "n/a" : format.format(value);
}

function createSvg(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// Returns about `count` ticks, at multiples of 1, 2 or 5 times a power of ten.
function ticks(low, high, count) {
  const rough = (high - low) / count;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
  const values = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++) values.push(k * step || 0);
  return values;
}

// Returns the values and texts of an axis: numbers, or at most eight classes, abbreviated.
function axisLabels([low, high], classes) {
  if (!classes.length) return ticks(low, high, 5).map((v) => [v, decimals.format(v)]);
  const every = Math.ceil(classes.length / 8);
  const short = (name) => (name.length > 8 ? `${name.slice(0, 7)}…` : name);
  return classes.map((name, k) => [k, short(name)]).filter(([k]) => k % every === 0);
}

// Returns a chart with axes: x and y map values to positions, parts are its elements.
function createChart(width, height, left, xs, ys, classes = []) {
  const bottom = height - 24, top = 10, right = width - 12;
  const span = ([low, high]) => (high > low ? high - low : 1);
  const x = (v) => left + ((v - xs[0]) / span(xs)) * (right - left);
  const y = (v) => bottom - ((Math.min(v, ys[1]) - ys[0]) / span(ys)) * (bottom - top);
  const parts = [];
  for (const [v, text] of axisLabels(ys, classes)) {
    parts.push(createSvg("line", { class: "grid", x1: left, x2: right, y1: y(v), y2: y(v) }));
    parts.push(createSvg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, text));
  }
  for (const [v, text] of axisLabels(xs, classes)) {
    const last = x(v) + 7 * text.length > width;  // the text would extend beyond the edge
    const position = { x: last ? width : x(v), y: height - 6, "text-anchor": last ? "end" : "middle" };
    parts.push(createSvg("text", position, text));
  }
  return { x, y, parts, top, bottom };
}

function path(points) {
  return points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
}

// Converts sums between points to averages: over all rows, and since the previous point. They are
// null if the weight is 0 or a loss is infinite, which arrives as null.
function averages(curve) {
  const finite = (value) => (Number.isFinite(value) ? value : null);
  let weight = 0, loss = 0;
  return curve.map(([rows, weights, losses]) => {
    const gained = losses ?? Infinity;
    weight += weights;
    loss += gained;
    return { rows, running: finite(loss / weight), windowed: finite(gained / weights) };
  });
}

// Returns the value that 97 % of the values do not exceed; nulls are left out.
function mostly(values) {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(0.97 * (sorted.length - 1))] : 0;
}

function drawCurve(metrics) {
  const points = averages(metrics.curve);
  if (!points.length) return;
  const last = points[points.length - 1];
  // the first averages may be extreme, and so may all running averages after one huge loss
  const recent = mostly(points.map((p) => p.windowed));
  const all = mostly(points.flatMap((p) => [p.running, p.windowed]));
  const top = Math.min(all, 3 * recent || all) * 1.1 || 1;
  const chart = createChart(760, 260, 64, [0, last.rows], [0, top]);
  for (const row of metrics.drifts) {
    chart.parts.push(createSvg("line", { class: "mark", x1: chart.x(row), x2: chart.x(row), y1: chart.top, y2: chart.bottom }));
  }
  const line = (key) => path(points.filter((p) => p[key] !== null).map((p) => [chart.x(p.rows), chart.y(p[key])]));
  chart.parts.push(createSvg("path", { class: "line-windowed", d: line("windowed") }));
  chart.parts.push(createSvg("path", { class: "line-running", d: line("running") }));
  const curve = byId("curve");
  curve.replaceChildren(...chart.parts);
  curve.setAttribute("aria-label",
    `Average loss over ${count(last.rows, "row")}: ${number(points[0].running)} at the first point, ` +
    `${number(last.running)} now. The table below shows the numbers.`);
  if (byId("curve-table").closest("details").open) fillTable(points);
}

function fillTable(points) {
  const every = Math.max(1, Math.floor(points.length / 20));
  const rows = points.filter((_, k) => (points.length - 1 - k) % every === 0).map((p) => {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = integers.format(p.rows);
    row.append(head, ...[p.running, p.windowed].map((v) => {
      const cell = document.createElement("td");
      cell.textContent = number(v);
      return cell;
    }));
    return row;
  });
  byId("curve-table").replaceChildren(...rows);
}

function drawPairs({ pairs, classes }) {
  const finite = pairs.filter(([a, b]) => a !== null && b !== null);
  if (!finite.length) return;
  const [range, dots, description] = classes.length ? classDots(finite, classes) : numberDots(finite);
  const chart = createChart(370, 300, 56, range, range, classes);
  chart.parts.push(createSvg("line", { class: "same", x1: chart.x(range[0]), y1: chart.y(range[0]), x2: chart.x(range[1]), y2: chart.y(range[1]) }));
  for (const [prediction, label, r] of dots) {
    chart.parts.push(createSvg("circle", { class: "dot", cx: chart.x(label), cy: chart.y(prediction), r }));
  }
  chart.parts.push(createSvg("text", { x: 358, y: 270, "text-anchor": "end" }, "label"));
  chart.parts.push(createSvg("text", { x: 62, y: 20 }, "prediction"));
  byId("pairs").replaceChildren(...chart.parts);
  byId("pairs").setAttribute("aria-label", description);
}

function numberDots(pairs) {
  const all = pairs.flat();
  const low = Math.min(...all), high = Math.max(...all);
  const error = pairs.reduce((sum, [a, b]) => sum + Math.abs(a - b), 0) / pairs.length;
  return [
    high > low ? [low, high] : [low - 1, high + 1],
    pairs.map(([prediction, label]) => [prediction, label, 3.5]),
    `Predictions and labels of the last ${count(pairs.length, "row")}, from ${decimals.format(low)} to ` +
    `${decimals.format(high)}. The mean absolute error is ${decimals.format(error)}.`,
  ];
}

// Returns one dot for all rows with the same prediction and label; its area shows their number.
function classDots(pairs, classes) {
  const counts = new Map();
  for (const pair of pairs) counts.set(String(pair), (counts.get(String(pair)) ?? 0) + 1);
  const largest = Math.min(24, 120 / classes.length), most = Math.max(...counts.values());
  const dots = [...counts].map(([pair, n]) => [...pair.split(",").map(Number), 3 + largest * Math.sqrt(n / most)]);
  const correct = pairs.filter(([prediction, label]) => prediction === label).length;
  return [
    [-0.5, classes.length - 0.5],
    dots,
    `Predicted correctly: ${correct} of the last ${count(pairs.length, "row")} (${classes.length} classes).`,
  ];
}

function drawIntervals(intervals) {
  byId("intervals").hidden = intervals === null;
  if (intervals === null) return;
  drawBand(intervals);
  drawCoverage(intervals);
}

// Draws the last intervals as a band. An infinite end reaches the edge of the chart.
function drawBand({ rows, last }) {
  const known = last.flatMap(([, ...values]) => values).filter((v) => v !== null);
  const low = Math.min(...known), high = Math.max(...known);
  const first = rows - last.length + 1;
  const chart = createChart(760, 260, 64, [first, rows], high > low ? [low, high] : [low - 1, high + 1]);
  const at = (k) => chart.x(first + k);
  const tops = last.map((one, k) => [at(k), one[3] === null ? chart.top : chart.y(one[3])]);
  const bottoms = last.map((one, k) => [at(k), one[2] === null ? chart.bottom : chart.y(one[2])]);
  chart.parts.push(createSvg("path", { class: "band", d: `${path([...tops, ...bottoms.reverse()])}Z` }));
  const isOutside = ([, label, from, to]) => (from !== null && label < from) || (to !== null && label > to);
  last.forEach((one, k) => {
    if (one[1] === null) return;
    chart.parts.push(createSvg("circle", { class: isOutside(one) ? "outside" : "dot", cx: at(k), cy: chart.y(one[1]), r: 3 }));
  });
  byId("band").replaceChildren(...chart.parts);
  byId("band").setAttribute("aria-label",
    `Intervals and labels of the last ${count(last.length, "row")}; ` +
    `${count(last.filter(isOutside).length, "label")} outside.`);
}

function drawCoverage({ curve, target }) {
  if (!curve.length) return;
  const shares = curve.map(([rows, inside], k) => {
    const [before, covered] = k ? curve[k - 1] : [0, 0];
    return [rows, (inside - covered) / (rows - before)];
  });
  const values = shares.map(([, share]) => share);
  const end = curve[curve.length - 1][0];
  const chart = createChart(760, 160, 64, [0, end], [Math.min(...values, target) - 0.02, Math.min(1, Math.max(...values, target) + 0.02)]);
  chart.parts.push(createSvg("line", { class: "same", x1: chart.x(0), x2: chart.x(end), y1: chart.y(target), y2: chart.y(target) }));
  chart.parts.push(createSvg("path", { class: "line-running", d: path(shares.map(([rows, share]) => [chart.x(rows), chart.y(share)])) }));
  byId("coverage").replaceChildren(...chart.parts);
  byId("coverage").setAttribute("aria-label",
    `Share of labels inside their intervals, from ${decimals.format(Math.min(...values))} to ${decimals.format(Math.max(...values))}.`);
}

function drawMetrics({ rows, recent_rows, values }) {
  const table = byId("metrics");
  if (table.children.length !== values.length) {
    table.replaceChildren(...values.map(({ name, title }) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = title;
      row.append(head, ...["all", "recent"].map((which) => {
        const cell = document.createElement("td");
        const data = document.createElement("data");
        data.id = `${which}-${name}`;
        cell.append(data);
        return cell;
      }));
      return row;
    }));
  }
  for (const one of values) {
    for (const which of ["all", "recent"]) show(`${which}-${one.name}`, one[which], aligned);
  }
  byId("metrics-rows").textContent = rows
    ? `Of ${count(rows, "row")}, and of the last ${integers.format(recent_rows)}. Each was predicted before its label was learned.`
    : "no rows yet";
}

function drawWeights(weights) {
  const names = Object.keys(weights);
  byId("experts").hidden = !names.length;
  const table = byId("weights");
  if (table.children.length !== names.length) {
    table.replaceChildren(...names.map((name) => {
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
    const [, bar, text] = table.children[k].children;
    bar.firstChild.value = weights[name];
    text.textContent = `${(100 * weights[name]).toFixed(1)} %`;
  });
}

// Returns a number of things, such as "1 row" and "2 rows".
function count(number, thing) {
  return `${integers.format(number)} ${thing}${number === 1 ? "" : "s"}`;
}

// Returns a duration in the largest unit of which it has at least two.
function duration(seconds) {
  const [size, unit] = [[86400, "day"], [3600, "hour"], [60, "minute"]].find(([k]) => seconds >= 2 * k)
    ?? [1, "second"];
  return count(Math.floor(seconds / size), unit);
}

function describeVersion({ snapshot, snapshot_age: age, record }) {
  const written = age === null ? "" : `, written ${duration(age)} ago`;
  return `Last version: record ${integers.format(snapshot)}${written}. `
    + `Records learned since: ${integers.format(record - snapshot)}.`;
}

function describeChallenger({ rows, champion_loss, challenger_loss, interval, better }) {
  const verdict = better === null ? "no difference is certain yet" : `the ${better} is better`;
  return `Challenger: loss ${number(challenger_loss)}, champion ${number(champion_loss)}, over `
    + `${count(rows, "row")}. 95% interval of the difference: ${interval.map(number).join(" to ")}; ${verdict}.`;
}

function describeFollower({ leader, records, seconds, responds }) {
  const name = `Follower of ${leader}: `;
  if (!responds) return `${name}the leader does not respond.`;
  if (records === null) return `${name}not connected yet.`;
  if (records === 0) return `${name}all records are learned.`;
  return `${name}${count(records, "record")} (${duration(seconds)}) behind.`;
}

let previous = null;

function rate(metrics, key) {
  if (previous === null || metrics.time <= previous.time) return null;
  return Math.max(0, Math.round((metrics[key] - previous[key]) / (metrics.time - previous.time)));
}

function update(metrics) {
  for (const key of ["learned", "predicted", "pending", "waiting", "duplicates", "refused", "clipped"]) {
    show(key, metrics[key]);
  }
  show("loss", metrics.loss, decimals);
  show("recent_loss", metrics.recent_loss, decimals);
  show("interval_coverage", metrics.interval_coverage, aligned);
  show("learned-rate", rate(metrics, "learned"));
  show("predicted-rate", rate(metrics, "predicted"));
  drawCurve(metrics);
  drawPairs(metrics);
  drawIntervals(metrics.intervals);
  drawMetrics(metrics.metrics);
  drawWeights(metrics.weights);
  byId("version").textContent = describeVersion(metrics);
  for (const [key, describe] of [["challenger", describeChallenger], ["follower", describeFollower]]) {
    byId(key).hidden = metrics[key] === null;
    if (metrics[key] !== null) byId(key).textContent = describe(metrics[key]);
  }
  const drifts = metrics.drifts;
  byId("drifts").textContent = drifts.length
    ? `drift detected at row ${drifts.slice(-10).map((row) => integers.format(row)).join(", ")}`
    : "no drift detected";
  setStatus(metrics.trouble === null ? "live" : "trouble", metrics.trouble ?? "live, updated every second");
  previous = metrics;
}

// Changes the text only if it is different, so that a screen reader does not repeat it.
function setStatus(state, text) {
  const status = byId("status");
  if (status.textContent !== text) status.textContent = text;
  status.dataset.state = state;
}

const SILENCE = 5000, RETRY = 2000;  // milliseconds
let source = null, silence = null, retry = null;

function listen() {
  source = new EventSource("events");
  source.onmessage = (event) => {
    update(JSON.parse(event.data));
    expectMore();
  };
  source.addEventListener("stopping", () => setStatus("trouble", "the server is stopping"));
  source.onerror = () => {
    setStatus("trouble", "the service does not respond; retrying");
    clearTimeout(silence);
    // a browser gives up after an error response, for example while the server starts
    if (source.readyState === EventSource.CLOSED) retry = setTimeout(listen, RETRY);
  };
  expectMore();
}

// Reports a server that is suspended or cut off: its connection stays open, but is silent.
function expectMore() {
  clearTimeout(silence);
  silence = setTimeout(() => {
    source.close();
    setStatus("trouble", "the service does not respond; retrying");
    listen();
  }, SILENCE);
}

function stopListening() {
  source.close();
  clearTimeout(silence);
  clearTimeout(retry);
}

byId("pause").addEventListener("click", (event) => {
  const paused = event.target.getAttribute("aria-pressed") !== "true";
  event.target.setAttribute("aria-pressed", String(paused));
  event.target.textContent = paused ? "Resume" : "Pause";
  if (paused) {
    stopListening();
    setStatus("waiting", "paused");
  } else {
    listen();
  }
});

byId("curve-table").closest("details").addEventListener("toggle", () => {
  if (previous !== null) fillTable(averages(previous.curve));
});

listen();
