"use strict";
(() => {
  const table = document.getElementById("routetable");
  const filter = document.getElementById("filter");
  if (!table || !filter) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const found = document.getElementById("found");
  const key = (row, i) => {
    const v = row.cells[i].dataset.sort;
    return v === undefined ? row.cells[i].textContent.trim() : Number(v);
  };
  const sort = (th, i) => {
    const down = th.getAttribute("aria-sort") !== "descending";
    for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.sort((a, b) => {
      const x = key(a, i), y = key(b, i);
      const c = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
      return down ? -c : c;
    });
    body.append(...rows);
  };
  Array.from(table.tHead.rows[1].cells).forEach((th, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = th.textContent;
    th.replaceChildren(button);
    button.addEventListener("click", () => sort(th, i));
  });
  filter.addEventListener("input", () => {
    const want = filter.value.toLowerCase();
    let n = 0;
    for (const row of rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(want);
      if (!row.hidden) n++;
    }
    found.textContent = n + " of " + rows.length + " routes";
  });
  document.getElementById("tools").hidden = false;
})();
