// Values under the pointer, a line that stands out, sorted tables; the page says all without it.
(() => {
  const inverse = (told) => {
    const [kind, low, high, first, last] = told.split(" ").map((x, k) => k ? Number(x) : x);
    return (pixel) => {
      const part = (pixel - first) / (last - first);
      return kind === "log" ? low * (high / low) ** part : low + part * (high - low);
    };
  };
  const shown = (v) => Math.abs(v) >= 1e5 || (v && Math.abs(v) < 1e-3) ? v.toExponential(1) : String(+v.toPrecision(3));
  const told = document.body.appendChild(document.createElement("div"));
  told.id = "told";
  told.hidden = true;
  told.setAttribute("aria-hidden", "true");
  const light = (figure, name) => {
    figure.classList.toggle("lit", name !== null);
    for (const line of figure.querySelectorAll(".line")) line.classList.toggle("on", line.dataset.name === name);
  };
  for (const svg of document.querySelectorAll("svg.curve")) {
    const x = inverse(svg.dataset.x), y = inverse(svg.dataset.y), names = svg.dataset.names.split("|");
    const lines = [...svg.querySelectorAll(".line")].map((g) => {
      const path = g.querySelector("path:not(.leader)").getAttribute("d");
      const points = path.slice(1).split("L").map((p) => p.split(" ").map(Number));
      return { name: g.dataset.name, points };
    });
    const figure = svg.closest("figure");
    svg.querySelectorAll("title").forEach((t) => t.remove());
    svg.addEventListener("pointerleave", () => { told.hidden = true; light(figure, null); });
    svg.addEventListener("pointermove", (e) => {
      const at = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
      let best = [900, null, null];
      for (const { name, points } of lines) for (const p of points) {
        const far = (p[0] - at.x) ** 2 + (p[1] - at.y) ** 2;
        if (name && far < best[0]) best = [far, name, p];
      }
      told.hidden = !best[1];
      light(figure, best[1]);
      if (!best[1]) return;
      told.textContent = `${best[1]}: ${names[0]} ≈ ${shown(x(best[2][0]))}, ${names[1]} ≈ ${shown(y(best[2][1]))}`;
      told.style.left = `${Math.min(e.pageX + 12, scrollX + innerWidth - told.offsetWidth - 12)}px`;
      told.style.top = `${e.pageY + 16}px`;
    });
  }
  for (const entry of document.querySelectorAll(".legend li")) {
    const figure = entry.closest("figure");
    entry.addEventListener("pointerenter", () => light(figure, entry.dataset.name));
    entry.addEventListener("pointerleave", () => light(figure, null));
  }
  const value = (cell) => {
    const plain = cell.innerHTML.replace(/(·|\b)10<sup>(.*?)<\/sup>/, (_, dot, power) => `${dot ? "" : 1}e${power}`).replace(/<[^>]*>/g, "");
    const text = plain.trim().replaceAll("−", "-").replace(/,/g, "");
    if (!cell.classList.contains("number")) return text.toLowerCase();
    if (text === "infinite") return Infinity;
    const [a, b] = text.replace(/^[^\d.-]+/, "").split("/").map(parseFloat);
    return Number.isNaN(a) ? text : b ? a / b : a;
  };
  const added = (text, label, act) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "tool";
    button.textContent = text;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", () => act(button));
    return button;
  };
  const saved = (name, kind, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: kind }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  for (const code of document.querySelectorAll("code")) {
    if (!code.textContent.startsWith("farfield ")) continue;
    code.after(" ", added("copy", "copy this command", (button) => {
      navigator.clipboard.writeText(code.textContent).then(() => { button.textContent = "copied"; }, () => getSelection().selectAllChildren(code));
    }));
  }
  for (const caption of document.querySelectorAll("figure:has(svg) > figcaption")) {
    caption.append(" ", added("SVG", "download the figure as SVG", () => {
      const drawn = [...caption.parentElement.querySelectorAll("svg")];
      const copy = drawn.find((svg) => svg.getBoundingClientRect().width > 0).cloneNode(true);
      copy.classList.add("farfield");
      copy.prepend(document.querySelector("style").cloneNode(true));
      saved("figure.svg", "image/svg+xml", new XMLSerializer().serializeToString(copy));
    }));
  }
  const named = document.title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  for (const table of document.querySelectorAll(".farfield table")) {
    if (table.parentElement.nextElementSibling?.matches("details.fold")) continue; // a few of its rows
    const rows = [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim().replace(/\s+/g, " ")));
    const csv = () => rows.map((row) => row.map((cell) => /[",]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell).join(",")).join("\n");
    const tex = () => [`\\begin{tabular}{${"l".repeat(rows[0].length)}}`, ...rows.map((row) => `${row.map((cell) => cell.replace(/[&%$#_{}]/g, "\\$&").replaceAll("−", "$-$")).join(" & ")} \\\\`), "\\end{tabular}"].join("\n");
    const tools = document.createElement("p");
    tools.className = "tools";
    tools.append(added("CSV", "download the table as CSV", () => saved(`${named}.csv`, "text/csv", csv())), " ", added("LaTeX", "download the table as LaTeX", () => saved(`${named}.tex`, "text/plain", tex())));
    table.parentElement.after(tools);
    const body = table.tBodies[0];
    if (!table.tHead || body.rows.length < 4) continue;
    if (body.rows.length >= 24) {
      const find = document.createElement("input");
      find.type = "search";
      find.placeholder = "search";
      find.setAttribute("aria-label", `search ${body.rows.length} rows`);
      find.addEventListener("input", () => {
        const wanted = find.value.toLowerCase().replace(/[^a-z0-9]+/g, "");
        for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().replace(/[^a-z0-9]+/g, "").includes(wanted);
      });
      table.parentElement.before(find);
    }
    [...table.tHead.rows[0].cells].forEach((head, k) => {
      const button = document.createElement("button");
      button.className = "sort";
      button.type = "button";
      button.textContent = "↕";
      button.setAttribute("aria-label", `sort by ${head.textContent}`);
      button.addEventListener("click", () => {
        const up = head.ariaSort !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].map((row) => [value(row.cells[k]), row]);
        rows.sort(([a], [b]) => (typeof a === typeof b ? (a > b) - (a < b) : typeof a === "number" ? -1 : 1) * (up ? 1 : -1));
        body.append(...rows.map(([, row]) => row));
      });
      head.append("\u00a0", button);
    });
  }
  // What scrolls is a stop of the keyboard, what does not is none.
  const sized = new ResizeObserver((seen) => seen.forEach(({ target: box }) => { box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1; }));
  document.querySelectorAll(".formula, .steps, .table").forEach((box) => sized.observe(box));
})();
