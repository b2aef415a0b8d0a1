// A canvas that can be moved and zoomed by mouse, wheel, fingers, keys and buttons.
// draw(context, view) paints; hover(x, y, event) is told where the pointer is, or (null) that it left.
function setUpView(canvas, box, draw, hover) {
  const view = { scale: 1, x: 0, y: 0, width: 0, height: 0 };
  const pointers = new Map();
  let queued = false;

  function paint() {
    queued = false;
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    view.width = width;
    view.height = height;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    draw(context, view);
  }
  view.repaint = () => {
    if (!queued) { queued = true; window.requestAnimationFrame(paint); }
  };
  // Keeps the point under (x, y) where it is.
  view.zoom = (factor, x, y) => {
    const scale = Math.min(200, Math.max(0.5, view.scale * factor));
    view.x = x - (x - view.x) * scale / view.scale;
    view.y = y - (y - view.y) * scale / view.scale;
    view.scale = scale;
    view.repaint();
  };
  view.reset = () => { view.scale = 1; view.x = 0; view.y = 0; view.repaint(); };

  const local = (event) => {
    const rectangle = canvas.getBoundingClientRect();
    return [event.clientX - rectangle.left, event.clientY - rectangle.top];
  };
  const spread = () => {
    const [a, b] = Array.from(pointers.values());
    return { length: Math.hypot(a[0] - b[0], a[1] - b[1]) || 1, x: (a[0] + b[0]) / 2, y: (a[1] + b[1]) / 2 };
  };

  canvas.addEventListener("pointerdown", (event) => {
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, local(event));
    hover(...local(event), event);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = local(event);
    const before = pointers.get(event.pointerId);
    if (before === undefined) { hover(x, y, event); return; }
    if (pointers.size === 1) {
      view.x += x - before[0];
      view.y += y - before[1];
      pointers.set(event.pointerId, [x, y]);
    } else if (pointers.size === 2) {
      const old = spread();
      pointers.set(event.pointerId, [x, y]);
      const now = spread();
      view.x += now.x - old.x;
      view.y += now.y - old.y;
      view.zoom(now.length / old.length, now.x, now.y);
    }
    view.repaint();
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => pointers.delete(event.pointerId));
  }
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("wheel", (event) => {
    // The wheel scrolls the page until the drawing has been chosen: nobody gets stuck on the way down.
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    view.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...local(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
    if (steps[event.key]) { view.x += steps[event.key][0]; view.y += steps[event.key][1]; view.repaint(); }
    else if (event.key === "+" || event.key === "=") view.zoom(1.25, view.width / 2, view.height / 2);
    else if (event.key === "-") view.zoom(0.8, view.width / 2, view.height / 2);
    else if (event.key === "0") view.reset();
    else return;
    event.preventDefault();
  });
  box.querySelector(".zoom-in").addEventListener("click", () => view.zoom(1.4, view.width / 2, view.height / 2));
  box.querySelector(".zoom-out").addEventListener("click", () => view.zoom(1 / 1.4, view.width / 2, view.height / 2));
  box.querySelector(".zoom-reset").addEventListener("click", view.reset);
  new ResizeObserver(view.repaint).observe(canvas);
  redraws.push(view.repaint);
  return view;
}

// Names at points, the first ones first, none over another, none left of an edge.
function drawNames(context, view, candidates, place, name, edge) {
  const taken = [];
  const most = candidates.length <= 60 ? 60 : Math.max(12, view.width / 28);
  let drawn = 0, tried = 0;
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = colour("text");
  context.strokeStyle = colour("panel");
  context.lineWidth = 3;
  for (const i of candidates) {
    if (drawn >= most) break;
    const [x, y] = place(i);
    if (x < edge || y < 0 || x > view.width || y > view.height) continue;
    if (++tried > 300) break;
    let text = name(i);
    if (text.length > 20) text = text.slice(0, 19) + "…";
    const width = context.measureText(text).width;
    // Above the point: beside it most edges pass.
    const left = Math.max(edge, Math.min(x - width / 2, view.width - width - 2)), middle = y > 20 ? y - 13 : y + 13;
    const box = [left - 2, middle - 8, left + width + 2, middle + 8];
    if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
    taken.push(box);
    context.strokeText(text, left, middle);
    context.fillText(text, left, middle);
    drawn++;
  }
}
