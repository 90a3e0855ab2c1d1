// What pages do beyond showing: the chart of a log, and the live tail. Text of others is only ever set as text.
"use strict";

const MOST_LINES = 2000;
const MOST_CHARACTERS = 1000;

// Time as ISO 8601 writes it, in the zone of who looks, as fine as the steps between the marks of the axis.
function written(seconds, step) {
  const date = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  if (step >= 86400) return day;
  const minute = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (step >= 60) return `${day} ${minute}`;
  const second = `${minute}:${two(date.getSeconds())}`;
  return step >= 1 ? second : `${second}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

function drawChart(place) {
  fetch(place.dataset.url, { headers: { Accept: "application/json" } })
    .then((answer) => answer.json())
    .then((data) => {
      const style = getComputedStyle(document.documentElement);
      const colour = (name) => style.getPropertyValue(name).trim();
      const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
      const bars = uPlot.paths.bars({ size: [0.6, 40, 2] });
      // What is deleted goes down, and is counted without a sign.
      const counted = (number) => (number == null ? "–" : Math.abs(number).toLocaleString("en"));
      const series = (label, name) => ({
        label,
        stroke: colour(name),
        fill: colour(name),
        paths: bars,
        points: { show: false },
        value: (chart, number) => counted(number),
      });
      const wholeSteps = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power)).flat();
      const options = {
        width: place.clientWidth,
        height: 220,
        padding: [null, 56, null, null],
        scales: { x: { time: true } },
        axes: [
          { ...axis, space: 140, size: 30, values: (chart, marks, index, space, step) => marks.map((mark) => written(mark, step)) },
          { ...axis, incrs: wholeSteps, size: 64, values: (chart, marks) => marks.map(counted) },
        ],
        series: [
          { label: "time", value: (chart, seconds) => (seconds == null ? "–" : written(seconds, 60)) },
          series("added", "--added"),
          series("deleted", "--deleted"),
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
      text: text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text,
      kind: text.startsWith("A ") ? "added" : text.startsWith("D ") ? "deleted" : "",
    }));
    take([{ text: `Version ${event.lastEventId}`, kind: "head" }, ...lines]);
  });
}

const chart = document.getElementById("chart");
if (chart) drawChart(chart);
const tail = document.getElementById("tail");
if (tail) followLog(tail);
