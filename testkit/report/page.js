"use strict";
document.documentElement.classList.add("js");
for (const card of document.querySelectorAll("[data-script]")) {
  const data = JSON.parse(card.querySelector("script[type='application/json']").textContent);
  const rows = new Map([...card.querySelectorAll("tr[data-n]")].map((row) => [row.dataset.n, row]));
  const marks = new Map([...card.querySelectorAll(".mark")].map((mark) => [mark.dataset.n, mark]));
  const panel = card.querySelector(".detail");

  const choose = (n, { focusRow = false, scrollRow = false } = {}) => {
    for (const old of card.querySelectorAll(".chosen")) old.classList.remove("chosen");
    for (const item of [rows.get(n), marks.get(n)]) if (item) item.classList.add("chosen");
    for (const mark of marks.values()) mark.tabIndex = -1;
    if (marks.has(n)) marks.get(n).tabIndex = 0;
    const list = document.createElement("dl");
    for (const [name, value] of data[n] || []) {
      const term = document.createElement("dt");
      const text = document.createElement("dd");
      term.textContent = name;
      text.textContent = value;
      list.append(term, text);
    }
    panel.replaceChildren(list);
    if (scrollRow && rows.has(n)) rows.get(n).scrollIntoView({ block: "nearest" });
    if (focusRow && rows.has(n)) rows.get(n).focus({ preventScroll: true });
  };

  const step = (items, n, by) => {
    const shown = [...items.values()].filter((item) => !item.hasAttribute("hidden"));
    const at = shown.findIndex((item) => item.dataset.n === n);
    return shown[Math.min(Math.max(at + by, 0), shown.length - 1)];
  };

  const keys = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  [...marks.values()].forEach((mark, at) => {
    mark.tabIndex = at ? -1 : 0;
    mark.addEventListener("click", (event) => {
      event.preventDefault();
      choose(mark.dataset.n, { scrollRow: true });
    });
    mark.addEventListener("focus", () => choose(mark.dataset.n));
    mark.addEventListener("keydown", (event) => {
      if (event.key in keys) {
        event.preventDefault();
        const next = step(marks, mark.dataset.n, keys[event.key]);
        next.tabIndex = 0;
        next.focus();
      } else if (event.key === "Enter") {
        event.preventDefault();
        choose(mark.dataset.n, { focusRow: true, scrollRow: true });
      }
    });
  });
  [...rows.values()].forEach((row, at) => {
    row.tabIndex = at ? -1 : 0;
    row.addEventListener("click", () => choose(row.dataset.n, { focusRow: true }));
    row.addEventListener("focus", () => choose(row.dataset.n));
    row.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        step(rows, row.dataset.n, keys[event.key]).focus();
      }
    });
  });
  for (const box of card.querySelectorAll(".filters input")) {
    box.addEventListener("change", () => {
      for (const item of card.querySelectorAll(`[data-kind="${box.value}"]`)) {
        item.toggleAttribute("hidden", !box.checked);
      }
    });
  }
  const first = card.querySelector("tr.decisive") || card.querySelector("tr[data-kind='stale']") ||
    card.querySelector("tr[data-n]");
  if (first) choose(first.dataset.n);
}
