// What every part of the page uses: the embedded data, packed numbers, the tip under the pointer, the colours.
const REPORT = JSON.parse(document.getElementById("data").textContent);

function unpackLevels(packed) {
  const text = atob(packed.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const types = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array };
  return new types[packed.type](bytes.buffer);
}

// Level 0 stands for what is not known.
function unpackNumbers(packed) {
  const levels = unpackLevels(packed);
  const steps = packed.type === "uint8" ? 254 : 65534;
  const numbers = new Float64Array(levels.length);
  for (let i = 0; i < levels.length; i++) {
    const share = (levels[i] - 1) / steps;
    numbers[i] = levels[i] === 0 ? NaN : packed.low * (1 - share) + packed.high * share;
  }
  return numbers;
}

function namer(side) {
  const positions = side.positions === null ? null : unpackLevels(side.positions);
  return (i) => side.labels !== null ? side.labels[i] : side.noun + " " + (positions === null ? i : positions[i]);
}

function shortNumber(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1).replace("e+", "e");
  return String(Number(value.toPrecision(size >= 100 ? 4 : 3)));
}

function count(value) { return value.toLocaleString("en"); }

const tip = document.getElementById("tip");

function showTip(text, event) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 6);
  const below = event.clientY + 16;
  tip.style.left = Math.max(6, left) + "px";
  tip.style.top = (below + box.height > window.innerHeight ? Math.max(6, event.clientY - box.height - 12) : below) + "px";
}

function hideTip() { tip.hidden = true; }

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }

// Drawings on a canvas do not follow a change of colours by themselves.
const redraws = [];
function redrawAll() { for (const redraw of redraws) redraw(); }

function setUpTheme() {
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  // A page that is opened from a file may have no storage.
  try { chosen = window.localStorage.getItem("lgmd-report-theme"); } catch (error) { chosen = null; }
  function apply() {
    if (chosen) document.documentElement.dataset.theme = chosen;
    const dark = chosen ? chosen === "dark" : system.matches;
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
    redrawAll();
  }
  button.addEventListener("click", () => {
    const dark = chosen ? chosen === "dark" : system.matches;
    chosen = dark ? "light" : "dark";
    try { window.localStorage.setItem("lgmd-report-theme", chosen); } catch (error) { /* only for this visit */ }
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}
