"use strict";
// The page: sliders to settings, settings through model.js to numbers and charts. `page` holds sliders and sizes.
const BLUE = "#0072b2", ORANGE = "#d55e00", GREEN = "#009e73", PINK = "#cc79a7", SKY = "#56b4e9", YELLOW = "#e69f00";
const HOPELESS = 1 / (1 + page.lost_max);  // efficiency below which first order no longer holds
const LOSSES_MAX = 1024;  // of the parity curves
const SECONDS = [[1e-3, "1 ms"], [0.01, "10 ms"], [0.1, "0.1 s"], [1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"],
                 [3600, "1 h"], [36000, "10 h"], [86400, "1 d"], [864000, "10 d"], [8640000, "100 d"], [31557600, "1 year"],
                 [315576000, "10 years"], [3155760000, "100 years"], [31557600000, "1000 years"]];
const state = {};  // slider's key -> index into its values

const digits = value => {
  const text = Number(value.toPrecision(3));
  return text >= 1000 ? Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f") : String(text);
};

function time(seconds) {
  for (const [size, unit] of [[31557600, "years"], [86400, "days"], [3600, "h"], [60, "min"], [1, "s"]])
    if (seconds >= 1.5 * size) return `${digits(seconds / size)} ${unit}`;
  return seconds >= 0.1 ? `${digits(seconds)} s` : `${digits(1000 * seconds)} ms`;
}

function sized(bytes, unit) {
  for (const [size, prefix] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"]])
    if (bytes >= size) return `${digits(bytes / size)} ${prefix}${unit}`;
  return `${digits(bytes / 1e3)} k${unit}`;
}

// As many nines as count.
function percent(share) {
  const missing = 100 * (1 - share);
  if (missing <= 0 || missing >= 1) return `${digits(100 * share)} %`;
  return missing < 1e-6 ? `100 % − ${missing.toExponential(1)} %` : `${(100 * share).toFixed(1 - Math.floor(Math.log10(missing)))} %`;
}

const shown = {
  nodes: value => digits(value), B: value => sized(value, "B"), "B/s": value => sized(value, "B/s"), s: time,
  share: value => `${Math.round(100 * value)} %`, text: value => value,
};

const settings = () => Object.fromEntries(page.sliders.map(one => [one.key, one.values[state[one.key]]]));
const at = chosen => answer(chosen, page.sizes);

// Numbers -----------------------------------------------------------------------------------------------------------

function cards(chosen, found) {
  return [
    ["efficiency", percent(found.efficiency)],
    ["save every (local and protected)", time(found.interval_s[0])],
    ["of these to shared storage, every", time(found.interval_s[2])],
    ["a checkpoint stops the job for", time(found.blocked_s)],
    ["on the local disk after", time(found.lag_s[0])],
    ["protected after", time(found.lag_s[1])],
    ["durable after", time(found.lag_s[2])],
    ["mean time to interrupt of the job", time(found.mtti_s)],
    [`restart possible after losing ${shown.nodes(Math.min(chosen.losses, chosen.nodes))} at once`, percent(found.survival)],
    ["failures that leave only the durable version", percent(found.unprotected_share)],
  ];
}

// Charts ------------------------------------------------------------------------------------------------------------

const nodeTicks = () => {
  const values = [16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576];
  return {tickvals: values, ticktext: values.map(n => n >= 1048576 ? "1M" : n >= 1024 ? `${n / 1024}K` : String(n))};
};

function layout(x, y, more) {
  const axis = {gridcolor: "#d9d9d9", zeroline: false};
  return Object.assign({
    xaxis: {title: {text: x}, ...axis}, yaxis: {title: {text: y}, ...axis}, font: {size: 13}, paper_bgcolor: "white",
    plot_bgcolor: "white", hovermode: "closest", margin: {l: 82, r: 15, t: 10, b: 50},
    legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: {size: 12}},
  }, more);
}

function line(name, colour, dash, x, y, more) {
  return Object.assign({type: "scatter", mode: "lines", name, line: {color: colour, dash, width: 2.5}, x, y}, more);
}

const here = (x, y, text) => ({type: "scatter", mode: "markers", name: "here", x: [x], y: [y], text: [text], hoverinfo: "text",
                               marker: {color: "#000000", size: 11, symbol: "diamond"}});

function againstNodes(chosen, nodes) {
  return nodes.map(count => at({...chosen, nodes: count}));
}

function efficiencyChart(chosen, found, nodes, all) {
  const shape = {type: "rect", xref: "paper", x0: 0, x1: 1, y0: 0, y1: 100 * HOPELESS, fillcolor: "#eeeeee", line: {width: 0}, layer: "below"};
  const made = layout("nodes (log scale)", "efficiency (%)", {
    showlegend: false, shapes: [shape],
    annotations: [{xref: "paper", x: 0.02, y: 3, yanchor: "bottom", text: "grey: first order no longer holds",
                   showarrow: false, xanchor: "left", font: {size: 12, color: "#555555"}}],
  });
  Object.assign(made.xaxis, {type: "log"}, nodeTicks());
  Object.assign(made.yaxis, {range: [0, 104]});
  const y = all.map(one => 100 * one.efficiency);
  return [[line("efficiency", BLUE, "solid", nodes, y, {hovertemplate: "%{x} nodes: %{y:.4g} %<extra></extra>"}),
           here(chosen.nodes, 100 * found.efficiency, `here: ${percent(found.efficiency)}`)], made];
}

function timesChart(chosen, found, nodes, all) {
  const rows = [
    ["durable every", ORANGE, "solid", one => one.interval_s[2]], ["durable after", ORANGE, "dot", one => one.lag_s[2]],
    ["save every", BLUE, "solid", one => one.interval_s[0]], ["protected after", BLUE, "dot", one => one.lag_s[1]],
    ["local after", GREEN, "dash", one => one.lag_s[0]], ["stops the job for", PINK, "dashdot", one => one.blocked_s],
  ];
  const made = layout("nodes (log scale)", "time (log scale)", {});
  made.xaxis = {...made.xaxis, type: "log", ...nodeTicks()};
  made.yaxis = {...made.yaxis, type: "log", tickvals: SECONDS.map(one => one[0]), ticktext: SECONDS.map(one => one[1])};
  made.shapes = [{type: "line", x0: chosen.nodes, x1: chosen.nodes, yref: "paper", y0: 0, y1: 1, line: {color: "#000000", width: 1, dash: "dot"}}];
  return [rows.map(([name, colour, dash, value]) => line(name, colour, dash, nodes, all.map(value),
          {text: all.map(one => `${name} ${time(value(one))}`), hovertemplate: "%{x} nodes: %{text}<extra></extra>"})), made];
}

// Chances that no restart is possible, at growing losses until hardly any restart is.
function curve(name, nodes) {
  const scheme = schemeOf(name), x = [], y = [];
  let table = [], most = 0;
  while (scheme.data && most < Math.min(nodes, LOSSES_MAX) && (table[most] ?? 0) < 0.99) {
    most = Math.min(Math.max(64, 2 * most), nodes, LOSSES_MAX);
    table = parityLosses(nodes, scheme.data, scheme.parity, most);
  }
  for (let lost = 1, end = scheme.data ? most : nodes; lost <= end; lost = Math.max(lost + 1, Math.round(lost * 1.08))) {
    const none = scheme.data ? table[lost] : lossChance(scheme, nodes, lost);
    if (none < 1e-8) continue;
    x.push(lost);
    y.push(none);
    if (none > 0.999) break;
  }
  return [x, y];
}

function survivalChart(chosen, found) {
  const colours = [SKY, GREEN, BLUE, "#000000", YELLOW, ORANGE, PINK], dashes = ["solid", "dash", "dashdot", "dot", "solid", "dash", "dashdot"];
  const data = page.sliders.find(one => one.key === "protection").values.map((name, i) => {
    const [x, y] = curve(name, chosen.nodes), mine = name === chosen.protection;
    return line(mine ? `<b>${name}</b>` : name, colours[i], dashes[i], x, y,
                {line: {color: colours[i], dash: dashes[i], width: mine ? 4.5 : 1.6}, hovertemplate: `${name}, %{x} lost: %{y:.3g}<extra></extra>`});
  });
  const lost = Math.min(chosen.losses, chosen.nodes), none = Math.max(1e-8, 1 - found.survival);
  data.push(here(lost, none, `${lost} lost, ${chosen.protection}: restart possible with ${percent(found.survival)}`));
  const made = layout("nodes lost at once (log scale)", "no restart (%, log scale)", {});
  made.xaxis = {...made.xaxis, type: "log", range: [-0.05, Math.log10(chosen.nodes)], dtick: 1};
  const ticks = [-8, -7, -6, -5, -4, -3, -2, -1, 0];
  made.yaxis = {...made.yaxis, type: "log", range: [-8.2, 0.2], tickvals: ticks.map(one => 10 ** one),
                ticktext: ticks.map(one => one < -6 ? `10<sup>${one + 2}</sup>` : String(Number((100 * 10 ** one).toPrecision(1))))};
  return [data, made];
}

function lossChart(found) {
  const names = ["saving", "work done<br>again", "not yet<br>safe", "restarts"], colours = [ORANGE, BLUE, SKY, GREEN];
  const y = found.lost.map(one => 100 * one * found.efficiency);
  const made = layout("", "share of the time (%)", {showlegend: false});
  made.yaxis.range = [0, Math.max(...y) * 1.15];
  return [[{type: "bar", x: names, y, text: y.map(one => `${digits(one)} %`), textposition: "outside", cliponaxis: false,
            marker: {color: colours}, hoverinfo: "none"}], made];
}

// -------------------------------------------------------------------------------------------------------------------

function show() {
  const chosen = settings(), found = at(chosen), nodes = page.sliders.find(one => one.key === "nodes").values;
  for (const one of page.sliders) {
    const text = shown[one.unit](chosen[one.key]), input = document.getElementById(one.key);
    document.getElementById(`${one.key}-value`).textContent = text;
    input.setAttribute("aria-valuetext", text);
  }
  document.getElementById("numbers").replaceChildren(...cards(chosen, found).map(([label, value]) => {
    const card = document.createElement("div"), name = document.createElement("dt"), what = document.createElement("dd");
    name.textContent = label;
    what.textContent = value;
    card.append(name, what);
    return card;
  }));
  document.getElementById("warning").hidden = found.efficiency >= HOPELESS;
  const all = againstNodes(chosen, nodes), options = {responsive: true, displaylogo: false, displayModeBar: false};
  const drawn = {efficiency: efficiencyChart(chosen, found, nodes, all), times: timesChart(chosen, found, nodes, all),
                 survival: survivalChart(chosen, found), losses: lossChart(found)};
  for (const [id, [data, made]] of Object.entries(drawn)) Plotly.react(`plot-${id}`, data, made, options);
  document.body.dataset.drawn = Number(document.body.dataset.drawn || 0) + 1;
}

// The address ends in #key=index&.., so that a position can be kept and sent.
function remember() {
  history.replaceState(null, "", "#" + page.sliders.map(one => `${one.key}=${state[one.key]}`).join("&"));
}

function begin() {
  const kept = new URLSearchParams(location.hash.slice(1));
  for (const one of page.sliders) {
    const index = /^\d+$/.test(kept.get(one.key)) ? Number(kept.get(one.key)) : -1;
    state[one.key] = index >= 0 && index < one.values.length ? index : one.values.indexOf(one.start);
    const input = document.getElementById(one.key);
    input.value = state[one.key];
    input.addEventListener("input", () => {
      state[one.key] = Number(input.value);
      show();
    });
    input.addEventListener("change", remember);  // once it is let go: browsers refuse many of these
  }
  show();
}
