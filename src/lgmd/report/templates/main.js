// Everything on the page, once.
for (const table of document.querySelectorAll("table.sortable")) setUpTable(table);
setUpMaps();
for (const box of document.querySelectorAll(".network")) setUpNetwork(box);
for (const box of document.querySelectorAll(".embedding")) setUpScatter(box);

function chart(id, options) {
  const container = document.getElementById(id);
  if (container) setUpChart(container, options);
}

if (REPORT.held_out) {
  const held = REPORT.held_out;
  if (held.levels) {
    chart("calibration", {
      x: held.levels, y: held.coverages, xRange: [0, 1], yRange: [0, 1.02], points: true, line: true, diagonal: true,
      xLabel: "probability promised", yLabel: "share inside",
    });
  }
  const both = padded(held.values.concat(held.predictions), 0.04);
  chart("predictions", {
    x: held.predictions, y: held.values, xRange: both, yRange: both, points: true, diagonal: true,
    xLabel: "predicted", yLabel: "came true",
  });
}

const convergence = REPORT.convergence;
if (convergence.objective.length) {
  const objective = convergence.objective.map((value) => value === null ? NaN : value);
  const lowest = Math.min(...objective.filter(Number.isFinite));
  const few = objective.length < 40;
  const common = { x: convergence.iterations, steps: convergence.graph_steps, line: true, points: few, xLabel: "iteration" };
  chart("objective", Object.assign({ y: objective, yLabel: "objective" }, common));
  chart("excess", Object.assign({ y: objective.map((value) => value - lowest), log: true, yLabel: "above the lowest" }, common));
}
setUpTheme();
document.documentElement.dataset.ready = "yes";
