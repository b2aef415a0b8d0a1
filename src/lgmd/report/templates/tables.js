// Lists that sort by a click on a header and shrink to what the search box asks for.
function setUpTable(table) {
  const body = table.tBodies[0];
  const headers = Array.from(table.tHead.rows[0].cells);
  const box = table.closest(".edge-list");
  const search = box.querySelector(".table-search");
  const shown = box.querySelector(".rows-shown");

  headers.forEach((header, column) => {
    header.querySelector("button").addEventListener("click", () => {
      const ascending = header.getAttribute("aria-sort") !== "ascending";
      const sign = ascending ? 1 : -1;
      const numeric = header.dataset.type === "number";
      const keyed = Array.from(body.rows, (row) => [row.cells[column].textContent, row]);
      keyed.sort(([a], [b]) => sign * (numeric ? Number(a) - Number(b) : a.localeCompare(b, undefined, { numeric: true })));
      for (const [, row] of keyed) body.append(row);
      for (const other of headers) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    });
  });

  function filter() {
    const wanted = search.value.trim().toLowerCase();
    let visible = 0;
    for (const row of body.rows) {
      const text = row.cells[1].textContent + "\n" + row.cells[2].textContent;
      row.hidden = !text.toLowerCase().includes(wanted);
      if (!row.hidden) visible++;
    }
    shown.textContent = wanted ? count(visible) + " of " + count(body.rows.length) + " listed edges" : "";
  }
  search.addEventListener("input", filter);
}
