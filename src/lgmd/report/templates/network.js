// A graph: edges above a threshold, names and strongest neighbours under the pointer.
function setUpNetwork(box) {
  const data = REPORT.networks[Number(box.dataset.network)];
  const canvas = box.querySelector(".drawing");
  const slider = box.querySelector(".threshold-slider");
  const name = namer(data);
  const xs = unpackLevels(data.x), ys = unpackLevels(data.y);
  const sources = unpackLevels(data.sources), targets = unpackLevels(data.targets);
  const levels = unpackLevels(data.correlations);
  const n = data.n_nodes, m = data.n_edges;
  const correlations = new Float64Array(m);
  for (let e = 0; e < m; e++) correlations[e] = levels[e] / 10000 - 1;

  let right = 1, bottom = 1;
  for (let i = 0; i < n; i++) { right = Math.max(right, xs[i]); bottom = Math.max(bottom, ys[i]); }
  const degree = new Uint32Array(n);
  for (let e = 0; e < m; e++) { degree[sources[e]]++; degree[targets[e]]++; }
  const neighbours = Array.from({ length: n }, () => []);
  for (let e = 0; e < m; e++) { neighbours[sources[e]].push(e); neighbours[targets[e]].push(e); }
  const byDegree = Array.from({ length: n }, (_, i) => i).filter((i) => degree[i] > 0).sort((a, b) => degree[b] - degree[a]);

  const range = Math.max(1e-9, data.strongest - data.weakest);
  const bins = 5;
  const binOf = new Uint8Array(m);
  for (let e = 0; e < m; e++) {
    binOf[e] = Math.max(0, Math.min(bins - 1, Math.floor((Math.abs(correlations[e]) - data.weakest) / range * bins)));
  }
  let shown = m, hovered = -1, found = [];

  // Edges come strongest first, so those that are shown are always the first ones.
  function setThreshold() {
    const share = Number(slider.value) / Number(slider.max);
    const threshold = share === 0 ? 0 : data.weakest + share * (data.strongest - data.weakest);
    let low = 0, high = m;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (Math.abs(correlations[middle]) >= threshold - 5e-5) low = middle + 1; else high = middle;
    }
    shown = low;
    const text = (share === 0 ? data.weakest : threshold).toFixed(3);
    box.querySelector(".threshold").textContent = text;
    slider.setAttribute("aria-valuetext", text);
    box.querySelector(".edges-shown").textContent = count(shown) + " of " + count(m) + " edges shown";
    view.repaint();
  }

  // Where a node is drawn: to.x + to.scale * xs[i], and the same for y.
  function placement(view) {
    const margin = 24;
    const fit = Math.min((view.width - 2 * margin) / right, (view.height - 2 * margin) / bottom);
    const left = (view.width - fit * right) / 2, top = (view.height - fit * bottom) / 2;
    return { scale: view.scale * fit, x: view.x + view.scale * left, y: view.y + view.scale * top };
  }

  function radius(i) {
    const size = n > 5000 ? 0.7 : n > 1000 ? 1.4 : n > 200 ? 2.4 : 3.4;
    return size * (1 + Math.min(0.8, 0.12 * Math.sqrt(degree[i]))) * Math.min(4, Math.pow(view.scale, 0.5));
  }

  function draw(context, view) {
    const to = placement(view);
    const px = new Float32Array(n), py = new Float32Array(n);
    for (let i = 0; i < n; i++) { px[i] = to.x + to.scale * xs[i]; py[i] = to.y + to.scale * ys[i]; }
    // Few strokes of many lines each: a stroke for every edge would take seconds.
    const crowd = Math.min(1, Math.sqrt(400 / (shown + 1)));
    for (let bin = 0; bin < bins; bin++) {
      for (const sign of [1, -1]) {
        context.beginPath();
        for (let e = 0; e < shown; e++) {
          if (correlations[e] * sign <= 0) continue;
          if (binOf[e] !== bin) continue;
          const i = sources[e], j = targets[e];
          if ((px[i] < 0 && px[j] < 0) || (py[i] < 0 && py[j] < 0)) continue;
          if ((px[i] > view.width && px[j] > view.width) || (py[i] > view.height && py[j] > view.height)) continue;
          context.moveTo(px[i], py[i]);
          context.lineTo(px[j], py[j]);
        }
        context.strokeStyle = colour(sign > 0 ? "plus" : "minus");
        context.globalAlpha = (0.6 + 0.1 * bin) * Math.max(0.5, crowd);
        context.lineWidth = (1.1 + 0.4 * bin) * Math.max(0.6, crowd);
        context.stroke();
      }
    }
    context.globalAlpha = 1;
    context.fillStyle = colour("node");
    context.beginPath();
    for (let i = 0; i < n; i++) {
      if (px[i] < -9 || py[i] < -9 || px[i] > view.width + 9 || py[i] > view.height + 9) continue;
      const r = degree[i] ? radius(i) : 0.7 * radius(i);
      if (n > 3000) context.rect(px[i] - r, py[i] - r, 2 * r, 2 * r);
      else { context.moveTo(px[i] + r, py[i]); context.arc(px[i], py[i], r, 0, 6.2832); }
    }
    context.fill();
    drawMarks(context, px, py);
    const wanted = hovered >= 0 ? [hovered].concat(joined(hovered).map((edge) => other(edge, hovered))) : found.length ? found : byDegree;
    drawNames(context, view, wanted, (i) => [px[i], py[i]], name, 2);
  }

  function drawMarks(context, px, py) {
    context.strokeStyle = colour("mark");
    context.lineWidth = 2;
    if (hovered >= 0) {
      context.beginPath();
      for (const e of joined(hovered)) {
        context.moveTo(px[sources[e]], py[sources[e]]);
        context.lineTo(px[targets[e]], py[targets[e]]);
      }
      context.stroke();
    }
    for (const i of hovered >= 0 ? [hovered] : found) {
      context.beginPath();
      context.arc(px[i], py[i], radius(i) + 4, 0, 6.2832);
      context.stroke();
    }
  }

  const joined = (i) => neighbours[i].filter((e) => e < shown);
  const other = (e, i) => sources[e] === i ? targets[e] : sources[e];

  function hover(x, y, event) {
    let nearest = -1;
    if (x !== null) {
      const to = placement(view);
      let best = event.pointerType === "touch" ? 400 : 144;
      for (let i = 0; i < n; i++) {
        const across = to.x + to.scale * xs[i] - x, down = to.y + to.scale * ys[i] - y;
        const distance = across * across + down * down;
        if (distance < best) { best = distance; nearest = i; }
      }
    }
    if (nearest !== hovered) { hovered = nearest; view.repaint(); }
    if (hovered < 0) { hideTip(); return; }
    const edges = joined(hovered);
    const lines = [name(hovered), edges.length ? count(edges.length) + (edges.length > 1 ? " edges shown" : " edge shown") : "no edge shown"];
    for (const e of edges.slice(0, 6)) lines.push(correlations[e].toFixed(3) + "  " + name(other(e, hovered)));
    showTip(lines.join("\n"), event);
  }

  const view = setUpView(canvas, box, draw, hover);
  const find = box.querySelector(".find-node");
  find.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    found = [];
    for (let i = 0; wanted && i < n && found.length < 200; i++) {
      if (name(i).toLowerCase().includes(wanted)) found.push(i);
    }
    view.repaint();
  });
  slider.addEventListener("input", setThreshold);
  // Upwards, so that no more edges are shown at first than was meant.
  if (data.threshold > 0) slider.value = String(Math.ceil((data.threshold - data.weakest) / range * Number(slider.max)));
  setThreshold();
}
