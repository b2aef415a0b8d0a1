// Heat maps: names and values under the pointer, and the choice of an order.
function setUpMaps() {
  const words = { data: "table", fit: "fit", bars: "error bar", share: "share observed" };
  for (const set of document.querySelectorAll(".map-set")) {
    const data = REPORT.maps[set.dataset.order];
    const across = data.columns.length, down = data.rows.length;
    let values = null;
    for (const map of set.querySelectorAll(".map")) {
      const tell = (event) => {
        // Unpacked when first asked for, so that the page opens fast.
        values = values || data.maps.map((one) => unpackNumbers(one.values));
        const box = map.getBoundingClientRect();
        const row = Math.floor((event.clientY - box.top) / box.height * down);
        const column = Math.floor((event.clientX - box.left) / box.width * across);
        if (row < 0 || column < 0 || row >= down || column >= across) { hideTip(); return; }
        const lines = [data.rows[row], data.columns[column]];
        data.maps.forEach((one, i) => {
          const value = values[i][row * across + column];
          lines.push(words[one.kind] + ": " + (Number.isNaN(value) ? "not observed" : shortNumber(value)));
        });
        showTip(lines.join("\n"), event);
      };
      map.addEventListener("pointermove", tell);
      map.addEventListener("pointerdown", tell);
      map.addEventListener("pointerleave", hideTip);
    }
  }
  for (const choice of document.querySelectorAll("input[name=order]")) {
    choice.addEventListener("change", () => {
      for (const set of document.querySelectorAll(".map-set")) set.hidden = set.dataset.order !== choice.value;
    });
  }
}
