// What is wrong with a page as it is laid out: sideways scroll, texts on each other, texts cut off.
() => {
  const slack = 2;
  const clips = (e) => getComputedStyle(e).overflow !== "visible";
  // The part of a rectangle that is seen, within every ancestor that hides what is beyond it.
  const seen = (rect, element) => {
    let { left, top, right, bottom } = rect;
    for (let e = element; e && e !== document.body; e = e.parentElement) {
      if (!(e instanceof SVGElement && !(e instanceof SVGSVGElement)) && clips(e)) {
        const box = e.getBoundingClientRect();
        left = Math.max(left, box.left); right = Math.min(right, box.right);
        top = Math.max(top, box.top); bottom = Math.min(bottom, box.bottom);
      }
    }
    return { left, top, right, bottom };
  };
  const texts = [];
  const add = (rect, element, said) => {
    const box = seen(rect, element);
    if (box.right - box.left > slack && box.bottom - box.top > slack) {
      texts.push({ ...box, element, said: said.trim().slice(0, 60) });
    }
  };
  const visible = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement;
    if (!node.data.trim() || !visible(e)) continue;
    if (e.closest("math, svg, script, style, title")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) add(rect, e, node.data);
  }
  for (const e of document.querySelectorAll("math, svg text")) {
    if (visible(e)) add(e.getBoundingClientRect(), e, e.textContent);
  }
  texts.sort((a, b) => a.top - b.top);
  const overlaps = [];
  for (let i = 0; i < texts.length; i++) {
    for (let j = i + 1; j < texts.length && texts[j].top < texts[i].bottom - slack; j++) {
      const a = texts[i], b = texts[j];
      if (a.element === b.element) continue;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > slack && high > slack) overlaps.push(`${a.said} | ${b.said}`);
    }
  }
  const cut = [];
  for (const e of document.querySelectorAll("svg text")) {
    if (!visible(e)) continue;
    const frame = e.ownerSVGElement.getBoundingClientRect(), box = e.getBoundingClientRect();
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 ||
        box.bottom > frame.bottom + 1) cut.push(e.textContent);
  }
  // A label that a line of its picture goes through, and one that is too small to be read.
  // A grid is drawn so faintly that it does not count.
  const crossed = [], small = [];
  const faint = (e) => {
    let seen = parseFloat(getComputedStyle(e).strokeOpacity);
    for (; e instanceof SVGElement; e = e.parentElement) seen *= parseFloat(getComputedStyle(e).opacity);
    return seen < 0.3;
  };
  for (const svg of document.querySelectorAll("svg")) {
    const labels = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim() && visible(t)).map(
      (t) => ({ said: t.textContent.trim(), box: t.getBoundingClientRect(), at: t.getScreenCTM(), size: parseFloat(getComputedStyle(t).fontSize) }));
    for (const { said, size, at } of labels) {
      const shown = size * Math.hypot(at.a, at.b);
      if (shown < 8.99) small.push(`${shown.toFixed(1)} px: ${said}`);
    }
    if (!labels.length || !visible(svg)) continue;
    for (const line of svg.querySelectorAll("path, line, polyline, polygon, circle")) {
      const drawn = getComputedStyle(line);
      if (line.closest("defs, clipPath") || drawn.stroke === "none" || faint(line) || !visible(line)) continue;
      const clip = line.closest("[clip-path]")?.getAttribute("clip-path").match(/#([^)"]*)/);
      const rect = clip && document.getElementById(clip[1])?.firstElementChild?.getBBox();
      const to = line.getScreenCTM();
      for (let at = 0, end = line.getTotalLength(); at <= end; at += 1.5) {
        const point = line.getPointAtLength(at);
        if (rect && (point.x < rect.x || point.x > rect.x + rect.width || point.y < rect.y || point.y > rect.y + rect.height)) continue;
        const { x, y } = point.matrixTransform(to);
        for (const { said, box } of labels) {
          const edge = Math.min(4, .28 * box.height);
          if (x > box.left + 2 && x < box.right - 2 && y > box.top + edge && y < box.bottom - edge &&
              !crossed.includes(said)) crossed.push(said);
        }
      }
    }
  }
  const formulas = [...document.querySelectorAll("math")].filter(
    (m) => !m.getClientRects().length && visible(m)).length;
  return { scroll: document.documentElement.scrollWidth, overlaps: overlaps.slice(0, 8),
           cut: cut.slice(0, 8), crossed, small, formulas };
}
