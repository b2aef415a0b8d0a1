// Points of an embedding by two of its factors.
function setUpScatter(box) {
  const data = REPORT.embeddings[Number(box.dataset.embedding)];
  const canvas = box.querySelector(".drawing");
  const across = box.querySelector(".axis-x"), up = box.querySelector(".axis-y");
  const name = namer(data);
  const columns = data.columns.map(unpackNumbers);
  const n = columns[0].length;
  let xs, ys, xRange, yRange, hovered = -1, outermost;

  function choose() {
    xs = columns[Number(across.value)];
    ys = columns[Number(up.value)];
    xRange = padded(xs, 0.06);
    yRange = padded(ys, 0.06);
    const far = (i) => Math.hypot(xs[i] / (xRange[1] - xRange[0]), ys[i] / (yRange[1] - yRange[0]));
    outermost = Array.from({ length: n }, (_, i) => i).sort((a, b) => far(b) - far(a)).slice(0, 400);
    hovered = -1;
  }

  const left = 46, bottom = 36;
  function toScreen(view) {
    const width = view.width - left, height = view.height - bottom;
    return [
      (value) => view.x + view.scale * (left + (value - xRange[0]) / (xRange[1] - xRange[0]) * width),
      (value) => view.y + view.scale * ((yRange[1] - value) / (yRange[1] - yRange[0]) * height),
    ];
  }

  function draw(context, view) {
    const [px, py] = toScreen(view);
    const r = n > 1000 ? 2 : n > 200 ? 3 : 4;
    context.save();
    context.beginPath();
    context.rect(left, 0, view.width - left, view.height - bottom);
    context.clip();
    context.strokeStyle = colour("line");
    context.beginPath();
    context.moveTo(px(0), 0); context.lineTo(px(0), view.height);
    context.moveTo(0, py(0)); context.lineTo(view.width, py(0));
    context.stroke();
    context.fillStyle = colour("plus");
    context.globalAlpha = n > 1000 ? 0.45 : 0.75;
    context.beginPath();
    for (let i = 0; i < n; i++) {
      const x = px(xs[i]), y = py(ys[i]);
      context.moveTo(x + r, y);
      context.arc(x, y, r, 0, 6.2832);
    }
    context.fill();
    context.globalAlpha = 1;
    if (hovered >= 0) {
      context.strokeStyle = colour("mark");
      context.lineWidth = 2;
      context.beginPath();
      context.arc(px(xs[hovered]), py(ys[hovered]), r + 4, 0, 6.2832);
      context.stroke();
    }
    drawNames(context, view, hovered >= 0 ? [hovered] : outermost, (i) => [px(xs[i]), py(ys[i])], name, left + 2);
    context.restore();
    drawAxes(context, view);
  }

  function drawAxes(context, view) {
    const [px, py] = toScreen(view);
    const inverse = (to, at) => (at - to(0)) / (to(1) - to(0));
    const x = ticks(inverse(px, left), inverse(px, view.width), Math.floor(view.width / 90));
    const y = ticks(inverse(py, view.height - bottom), inverse(py, 0), Math.floor(view.height / 70));
    context.fillStyle = colour("muted");
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "center";
    for (const value of x) if (px(value) > left + 8 && px(value) < view.width - 16) context.fillText(tickText(value, x), px(value), view.height - bottom + 11);
    context.fillText("factor " + (Number(across.value) + 1), (left + view.width) / 2, view.height - 9);
    context.textAlign = "right";
    for (const value of y) if (py(value) < view.height - bottom - 4 && py(value) > 8) context.fillText(tickText(value, y), left - 6, py(value));
    context.save();
    context.translate(10, (view.height - bottom) / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText("factor " + (Number(up.value) + 1), 0, 0);
    context.restore();
    context.textAlign = "left";
    context.strokeStyle = colour("line");
    context.lineWidth = 1;
    context.strokeRect(left, 0.5, view.width - left - 0.5, view.height - bottom);
  }

  function hover(x, y, event) {
    let nearest = -1;
    if (x !== null) {
      const [px, py] = toScreen(view);
      let best = event.pointerType === "touch" ? 400 : 144;
      for (let i = 0; i < n; i++) {
        const distance = (px(xs[i]) - x) ** 2 + (py(ys[i]) - y) ** 2;
        if (distance < best) { best = distance; nearest = i; }
      }
    }
    if (nearest !== hovered) { hovered = nearest; view.repaint(); }
    if (hovered < 0) { hideTip(); return; }
    showTip(name(hovered) + "\n" + shortNumber(xs[hovered]) + ", " + shortNumber(ys[hovered]), event);
  }

  choose();
  const view = setUpView(canvas, box, draw, hover);
  for (const select of [across, up]) {
    select.addEventListener("change", () => { choose(); view.reset(); });
  }
  view.repaint();
}
