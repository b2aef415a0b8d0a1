// Small line and point charts, drawn anew at the width they have.
function svgElement(name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
}

function ticks(low, high, wanted) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, wanted);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
  return found;
}

function padded(values, share) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  const room = high > low ? share * (high - low) : Math.abs(low) * 0.1 || 1;
  return [low - room, high + room];
}

// options: x, y, xLabel, yLabel, xRange, yRange, points, line, diagonal, steps, log
function setUpChart(container, options) {
  function draw() {
    const width = container.clientWidth, height = container.clientHeight;
    if (!width) return;
    const y = options.log ? options.y.map((value) => value > 0 ? Math.log10(value) : NaN) : options.y;
    const [x0, x1] = options.xRange || padded(options.x, 0.03);
    const [y0, y1] = options.yRange || padded(y, 0.06);
    const yTicks = options.log
      ? ticks(Math.ceil(y0), Math.floor(y1), 5).filter(Number.isInteger)
      : ticks(y0, y1, Math.floor(height / 60));
    const yTexts = yTicks.map((value) => options.log ? "1e" + value : tickText(value, yTicks));
    const longest = Math.max(1, ...yTexts.map((text) => text.length));
    const box = { left: 26 + 7 * longest, right: width - 14, top: 10, bottom: height - 42 };
    const px = (value) => box.left + (value - x0) / (x1 - x0) * (box.right - box.left);
    const py = (value) => box.bottom - (value - y0) / (y1 - y0) * (box.bottom - box.top);
    const svg = svgElement("svg", { viewBox: "0 0 " + width + " " + height, "aria-hidden": "true" });

    const xTicks = ticks(x0, x1, Math.floor((box.right - box.left) / 75));
    for (const value of xTicks) {
      svg.append(svgElement("path", { class: "axis", d: "M" + px(value) + " " + box.top + "V" + box.bottom }));
      svg.append(svgElement("text", { x: px(value), y: box.bottom + 16, "text-anchor": "middle" }, tickText(value, xTicks)));
    }
    yTicks.forEach((value, i) => {
      svg.append(svgElement("path", { class: "axis", d: "M" + box.left + " " + py(value) + "H" + box.right }));
      svg.append(svgElement("text", { x: box.left - 6, y: py(value) + 4, "text-anchor": "end" }, yTexts[i]));
    });
    svg.append(svgElement("text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, options.xLabel));
    const middle = (box.top + box.bottom) / 2;
    svg.append(svgElement("text", { x: 12, y: middle, "text-anchor": "middle", transform: "rotate(-90 12 " + middle + ")" }, options.yLabel));

    if (options.diagonal) {
      const low = Math.max(x0, y0), high = Math.min(x1, y1);
      svg.append(svgElement("path", { class: "guide", d: "M" + px(low) + " " + py(low) + "L" + px(high) + " " + py(high) }));
    }
    for (const step of options.steps || []) {
      svg.append(svgElement("path", { class: "step", d: "M" + px(step) + " " + box.top + "V" + box.bottom }));
    }
    let path = "", pen = "M";
    for (let i = 0; i < y.length; i++) {
      if (!Number.isFinite(y[i]) || !Number.isFinite(options.x[i])) { pen = "M"; continue; }
      path += pen + px(options.x[i]).toFixed(1) + " " + py(y[i]).toFixed(1);
      pen = "L";
      if (options.points) {
        svg.append(svgElement("circle", { class: options.line ? "dot" : "dot faint", cx: px(options.x[i]), cy: py(y[i]), r: options.line ? 3.5 : 2.5 }));
      }
    }
    if (options.line) svg.append(svgElement("path", { class: "curve", d: path }));
    container.replaceChildren(svg);
  }
  draw();
  new ResizeObserver(draw).observe(container);
}

// Just as many digits as tell neighbouring ticks apart.
function tickText(value, all) {
  const step = all.length > 1 ? Math.abs(all[1] - all[0]) : Math.abs(value) || 1;
  const largest = Math.max(...all.map(Math.abs));
  if (largest >= 1e6 || (largest > 0 && largest < 1e-4)) {
    return value === 0 ? "0" : value.toExponential(Math.min(6, Math.max(0, Math.ceil(Math.log10(largest / step))))).replace("e+", "e");
  }
  return value.toFixed(Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9))));
}
