// What pages do beyond showing: the chart of a log, and the live tail. Text of others is only ever set as text.
"use strict";

const MOST_LINES = 2000;

function drawChart(place) {
  fetch(place.dataset.url, { headers: { Accept: "application/json" } })
    .then((answer) => answer.json())
    .then((data) => {
      const style = getComputedStyle(document.documentElement);
      const colour = (name) => style.getPropertyValue(name).trim();
      const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 } };
      const bars = uPlot.paths.bars({ size: [0.6, 40] });
      const options = {
        width: place.clientWidth,
        height: 220,
        scales: { x: { time: true } },
        axes: [axis, axis],
        series: [
          {},
          { label: "added", stroke: colour("--added"), fill: colour("--added"), paths: bars, points: { show: false } },
          { label: "deleted", stroke: colour("--deleted"), fill: colour("--deleted"), paths: bars, points: { show: false } },
        ],
      };
      const chart = new uPlot(options, [data.seconds, data.adds, data.deletes.map((n) => -n)], place);
      addEventListener("resize", () => chart.setSize({ width: place.clientWidth, height: 220 }));
    });
}

function followLog(place) {
  const pause = document.getElementById("pause");
  const filter = document.getElementById("filter");
  const state = document.getElementById("state");
  let waiting = [];
  let isPaused = false;

  function show(line) {
    const element = document.createElement(line.kind === "head" ? "h2" : "div");
    element.textContent = line.text;
    if (line.kind) element.className = line.kind;
    element.hidden = line.kind !== "head" && !line.text.includes(filter.value);
    place.append(element);
    while (place.childElementCount > MOST_LINES) place.firstElementChild.remove();
  }

  function take(lines) {
    if (isPaused) {
      waiting = waiting.concat(lines).slice(-MOST_LINES);
      state.textContent = `Paused; ${waiting.length} lines are waiting`;
      return;
    }
    const isAtEnd = place.scrollHeight - place.scrollTop - place.clientHeight < 40;
    lines.forEach(show);
    if (isAtEnd) place.scrollTop = place.scrollHeight;
  }

  pause.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
    pause.textContent = isPaused ? "Go on" : "Pause";
    if (!isPaused) {
      const lines = waiting;
      waiting = [];
      take(lines);
      state.textContent = "Live";
    }
  });
  filter.addEventListener("input", () => {
    for (const line of place.children) line.hidden = line.tagName !== "H2" && !line.textContent.includes(filter.value);
  });

  const source = new EventSource(place.dataset.url);
  source.addEventListener("open", () => { if (!isPaused) state.textContent = "Live"; });
  source.addEventListener("error", () => { state.textContent = "The connection broke; trying again …"; });
  source.addEventListener("patch", (event) => {
    const lines = event.data.split("\n").map((text) => ({
      text,
      kind: text.startsWith("A ") ? "added" : text.startsWith("D ") ? "deleted" : "",
    }));
    take([{ text: `Version ${event.lastEventId}`, kind: "head" }, ...lines]);
  });
}

const chart = document.getElementById("chart");
if (chart) drawChart(chart);
const tail = document.getElementById("tail");
if (tail) followLog(tail);
