// The pictures of the essay, in float64. What is exact or certified comes with the page as data.
(() => {
  const told = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const ALIBI = (n) => -n / 64, NONE = () => 0, power = (r) => (n) => -r * Math.log1p(n);
  const BIASES = [(n) => -n / 8, power(2), power(1)];
  const raised = (e) => String(e).replace(/./g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
  const decade = (e) => e < 2 ? String(10 ** e) : `10${raised(e)}`;
  const percent = (x) => x >= .9995 ? "100 %" : x < 1e-5 ? "less than 0.001 %" : `${(100 * x).toPrecision(x < .1 ? 2 : 3)} %`;

  // log of the sum of exp(p(k)) over k < N at lengths N from 64 on: each key by itself up to DIRECT,
  // then an integral over log k by Simpson's rule, which twice as many points have to confirm.
  const DIRECT = 8192, STEPS = 12;
  const sums = (p, last) => {
    const found = [];
    let top = -Infinity, total = 0, k = 0, tried = 0, exact = 0;
    const weight = (x) => {
      const v = p(x);
      if (Number.isNaN(v)) throw new Error(`the formula is not a number at n = ${Math.round(x)}`);
      if (v === Infinity) throw new Error(`the formula is too large for this picture at n = ${Math.round(x)}`);
      if (v > top) { total *= Math.exp(top - v); top = v; }
      return v;
    };
    const simpson = (a, b, steps) => {
      const h = (b - a) / steps;
      const values = Array.from({ length: steps + 1 }, (_, i) => [Math.exp(a + i * h), weight(Math.exp(a + i * h))]);
      return values.reduce((s, [x, v], i) => s + Math.exp(v - top) * x * h / 3 * (i % steps === 0 ? 1 : i % 2 ? 4 : 2), 0);
    };
    for (let j = 0; ; j++) {
      const N = Math.min(last, Math.round(64 * 2 ** (j / 4)));
      if (N <= DIRECT) {
        const first = k, before = total, height = top;
        for (; k < N; k++) { const v = weight(k); total += v === -Infinity ? 0 : Math.exp(v - top); }
        if (first >= DIRECT / 4 && top === height) {
          exact += total - before;
          tried += simpson(Math.log(first - .5), Math.log(N - .5), STEPS);
        }
      } else {
        if (Math.abs(tried - exact) > .1 * exact + 1e-4 * total) throw new Error("the formula changes too fast for this picture");
        const a = Math.log(k - .5), b = Math.log(N - .5), fine = simpson(a, b, 2 * STEPS + 2), added = simpson(a, b, STEPS);
        total += added;
        if (Math.abs(fine - added) > .002 * total) throw new Error("the formula changes too fast for this picture");
        k = N;
      }
      if (!(total > 0)) throw new Error("the formula leaves no weight");
      found.push([N, Math.log(total) + top]);
      if (N >= last) return found;
    }
  };
  const kept = (p) => { const s = sums(p, 1e9); return s.map(([N, b]) => [N, Math.exp(s[0][1] - b)]); };

  // A picture: logarithmic x, y from 0 to 1 or by `decades` below 1. Names of lines stand at their
  // right ends, or on a narrow screen along them.
  const plot = (id, { x, decades = 0, yname = "", xname, lines, label }) => {
    const wide = get(id).clientWidth > 560, W = wide ? 720 : 340, H = wide ? 340 : 290;
    const left = 58, right = W - (wide ? 150 : 10), up = 28, down = H - 46;
    const at = (v) => left + (right - left) * Math.log(v / x[0]) / Math.log(x[1] / x[0]);
    const height = (v) => decades ? 1 + Math.log10(v) / decades : v;
    const over = (v) => down - (down - up) * Math.min(1, Math.max(0, height(v)));
    const ticks = decades ? Array.from({ length: decades / 2 + 1 }, (_, k) => -2 * k).map((e) => [10 ** e, e ? `10${raised(e)}` : "1"])
      : [0, .25, .5, .75, 1].map((t) => [t, `${100 * t} %`]);
    const esc = (s) => s.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
    let out = `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${esc(label)}">`;
    for (const [t, name] of ticks) out += `<path class="grid" d="M${left} ${over(t)}H${right}"/><text x="${left - 6}" y="${over(t) + 4}" text-anchor="end">${name}</text>`;
    out += `<text class="grey" x="4" y="12">${yname}</text>`;
    for (let e = Math.ceil(Math.log10(x[0])); 10 ** e <= x[1] * 1.001; e += wide ? 1 : 2) {
      out += `<text x="${at(10 ** e)}" y="${down + 18}" text-anchor="middle">${decade(e)}</text>`;
    }
    out += `<text x="${(left + right) / 2}" y="${H - 6}" text-anchor="middle">${xname}</text>`;
    // Each line in pixels; a name along its line stands where no line goes through it.
    const paths = lines.map((line) => line.points.filter(([a, b]) => a >= x[0] && a <= x[1] * 1.001 && Number.isFinite(b) && !(line.name && height(b) < 0))
      .map(([a, b]) => [at(a), over(b)]));
    const ink = paths.flatMap((path) => path.slice(1).flatMap(([a, b], k) => Array.from({ length: 1 + Math.ceil(Math.hypot(a - path[k][0], b - path[k][1]) / 3) },
      (_, i, n = 1 + Math.ceil(Math.hypot(a - path[k][0], b - path[k][1]) / 3)) => [path[k][0] + (a - path[k][0]) * i / n, path[k][1] + (b - path[k][1]) * i / n])));
    const clear = (l, t, w) => l > left + 4 && l + w < right && t > up && t + 16 < down - 4
      && !ink.some(([a, b]) => a > l - 6 && a < l + w + 6 && b > t && b < t + 18);
    const ends = [];
    lines.forEach((line, k) => {
      const path = paths[k], long = 8 * line.name.length;
      if (!path.length) return;
      out += `<path class="${line.look}" d="M${path.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(1)}`).join("L")}"/>`;
      const places = line.name && (line.along || !wide) ? path.toReversed().flatMap(([a, b]) => [[a + 9, b - 9], [a - 9 - long, b - 9], [a + 6, b - 24], [a - long / 2, b - 24], [a - long / 2, b + 8]]) : [];
      const place = places.find(([l, t]) => clear(l, t, long));
      if (place) {
        out += `<text class="${line.look}" x="${place[0]}" y="${place[1] + 13}">${esc(line.name)}</text>`;
        for (let i = 0; i <= long; i += 4) ink.push([place[0] + i, place[1] + 2], [place[0] + i, place[1] + 14]);
      } else if (line.name) ends.push({ line, y: path[path.length - 1][1] });
    });
    ends.sort((a, b) => a.y - b.y);
    if (wide) ends.reduce((least, e) => { e.y = Math.max(e.y, least); return e.y + 16; }, 0);
    if (wide) for (let k = ends.length - 1, most = down - 3; k >= 0; k--) { ends[k].y = Math.min(ends[k].y, most); most = ends[k].y - 16; }
    for (const { line, y } of wide ? ends : []) out += `<text class="${line.look}" x="${right + 8}" y="${y + 4}">${esc(line.name)}</text>`;
    out += "</svg>";
    if (!wide && ends.length) out += `<p class="note">${ends.map((e) => `<span class="${e.line.look}">${esc(e.line.name)}</span>`).join(" · ")}</p>`;
    get(id).innerHTML = out;
    return (shown) => x[0] * (x[1] / x[0]) ** ((shown * W - left) / (right - left));
  };
  const label = (kind) => Object.assign(document.createElement("span"), { className: "label", textContent: kind });

  // 1. The text
  const WORDS = ("In the beginning the model reads the whole book. It reads the first line and the last line with the same eyes, "
    + "and every word between them asks for its share of the attention. A bias takes the distance n between the query and the key "
    + "and adds p(n) to the score, so that near words are strong and far words are faint. Whether the far words can be dropped altogether "
    + "is not a matter of taste. It is a matter of a series. If the sum of exp p(n) over all distances is finite, a window holds all that "
    + "you care about, however long the book becomes. If it is infinite, the faint words are too many, and in the end they outweigh the "
    + "strong ones. The nearest words still look clear on the page, and yet together they hold less and less of what the model sees. "
    + "The difference between the two is thinner than any picture of the curves can show. It takes a proof to see it, which is why "
    + "this page has one. Read on from here.").split(" ");
  get("cursor").max = WORDS.length;
  const fade = () => {
    const end = Math.min(WORDS.length, Number(get("cursor").value));
    document.querySelectorAll(".text").forEach((box, k) => {
      const tokens = told.texts[k].tokens;
      const from = innerWidth > 560 ? 0 : Math.max(0, end - 90);
      box.replaceChildren(from ? "… " : "", ...WORDS.slice(from, end).flatMap((word, i) => {
        const span = document.createElement("span"), n = end - from - 1 - i;
        span.dataset.word = `${word} `;
        span.style.opacity = Math.max(.07, 1 + (BIASES[k](n) - BIASES[k](0)) / 8).toFixed(3);
        return n + 1 === tokens ? [Object.assign(document.createElement("b"), { className: "bar" }), span] : [span];
      }));
      box.setAttribute("aria-label", `${end} tokens, the stronger the more weight the bias leaves them. ${told.texts[k].held}.`);
      box.append(Object.assign(document.createElement("span"), { className: "cursor", textContent: "▮" }));
    });
  };

  // 2. The boundary
  const context = [["ALiBi, slope 1/64", ALIBI], ["no bias", NONE]].map(([name, p]) => ({ name, look: "grey", points: kept(p) }));
  const boundary = () => {
    const now = told.rates[get("r").value];
    get("r-value").value = now.r.toFixed(2);
    get("r-verdict").textContent = now.verdict;
    get("r-verdict").className = now.verdict;
    get("r-held").textContent = `${now.held}.`;
    plot("kept", { x: [64, 1e9], xname: "length of the text (tokens)", yname: "share of the nearest 64 tokens", label: `Share of the nearest 64 tokens, r = ${now.r}: it ${now.verdict}`,
      lines: [...context, { name: `r = ${now.r.toFixed(2)}`, look: now.verdict, points: kept(power(now.r)) }] });
  };

  // 3. The ladder
  const ladder = (k) => document.querySelectorAll("[data-ladder]").forEach((b, i) => {
    b.setAttribute("aria-pressed", i === k);
    get(`ladder-${i}`).hidden = i !== k;
  });

  // 4. Rotations
  const rotation = () => {
    const w = 2 ** get("window").value, beta = get("beta").value / 4;
    get("window-value").value = `${w.toLocaleString("en")} tokens`;
    get("beta-value").value = String(beta);
    get("outside-share").textContent = `${(Math.floor(1e3 * (1e9 - w) / (1e9 - w + w * Math.exp(2 * beta))) / 10).toFixed(1)} %`;
    get("outside-said").textContent = `at least, outside a window of ${w.toLocaleString("en")} tokens in a text of a billion`;
    const share = (b) => Array.from({ length: 121 }, (_, k) => w * 10 ** (k / 20)).map((N) => [N, (N - w) / (N - w + w * Math.exp(2 * b))]);
    plot("outside", { x: [w, w * 1e6], xname: "length of the text (tokens)", yname: "share of the tokens outside", label: "Least share of the tokens outside the window",
      lines: [{ name: "outside, at least", look: "diverges", points: share(beta) }] });
  };

  // 5. Heads
  const heads = () => {
    const slope = get("slope").value, of = told.heads[slope];
    const local = document.querySelectorAll('.head[aria-pressed="true"]').length, found = of[local];
    get("ratio").textContent = found ? (Math.round(100 * found[0] + 1e-6) / 100).toFixed(2) : "not measured";
    get("ratio").className = "";
    get("ratio-said").replaceChildren(`${local} of 8 heads local` + (found ? `, ${found[1]} seed${found[1] > 1 ? "s" : ""} ` : ". No run has this mixture."), ...(found ? [label("measured")] : []));
    const top = 1.9, points = Object.entries(of);
    const wide = get("ratios").clientWidth > 560, W = wide ? 720 : 340, at = (k) => 70 + (W - 110) * k / 8, over = (v) => 150 - 125 * (v - .9) / (top - .9);
    get("ratios").innerHTML = `<svg viewBox="0 0 ${W} 200" role="img" aria-label="Measured ratios by the number of local heads">`
      + [1, 1.25, 1.5, 1.75].map((t) => `<path class="grid" d="M54 ${over(t)}H${W - 24}"/><text x="44" y="${over(t) + 4}" text-anchor="end">${t.toFixed(2)}</text>`).join("")
      + `<text class="grey" x="4" y="12">perplexity on long rows over short ones</text>`
      + [...Array(9).keys()].map((k) => `<text x="${at(k)}" y="170" text-anchor="middle">${k}</text>`).join("")
      + `<text x="${W / 2}" y="188" text-anchor="middle">local heads</text>`
      + points.map(([k, [v]]) => `<circle cx="${at(k)}" cy="${over(v)}" r="${Number(k) === local ? 8 : 4.5}"${Number(k) === local ? "" : ' style="fill:var(--soft)"'}/>`).join("") + "</svg>";
  };

  // 6. The needle
  const TEXT = 1e6, PRICED = [["−n/64", ALIBI], ["−2 log(1+n)", power(2)], ["−log(1+n)", power(1)], ["no bias", NONE]]
    .map(([name, p]) => ({ name, p, sum: (() => { const s = sums(p, TEXT); return s[s.length - 1][1]; })() }));
  const price = ({ p, sum }, n) => sum - p(n) + Math.log1p(-Math.min(1 - 1e-16, Math.exp(p(n) - sum)));
  let dragged;
  for (const kind of ["pointerdown", "pointermove"]) get("found").addEventListener(kind, (e) => {
    const box = get("found").querySelector("svg").getBoundingClientRect();
    if (!(e.buttons & 1) || e.clientY > box.bottom) return;
    get("n").value = 100 / 6 * Math.log10(dragged((e.clientX - box.left) / box.width));
    get("n").dispatchEvent(new Event("input"));
  });
  const needle = () => {
    const n = Math.min(TEXT - 1, Math.round(10 ** (6 * get("n").value / 100))), g = get("g").value / 2;
    get("n-value").value = `${n.toLocaleString("en")} token${n > 1 ? "s" : ""} back`;
    get("g-value").value = g.toFixed(1);
    const share = (bias, k) => 1 / (1 + Math.exp(price(bias, k) - g));
    const places = Array.from({ length: 241 }, (_, k) => 10 ** (k / 40));
    const lines = PRICED.map((b, k) => ({ name: b.name, look: "grey", along: k < 2, points: places.map((x) => [x, share(b, x)]) }));
    const told = PRICED.map((b) => `${b.name} ${percent(share(b, n))}`).join(", ");
    get("found-said").replaceChildren(...PRICED.map((b) => {
      const tile = document.createElement("div");
      tile.append(Object.assign(document.createElement("dt"), { textContent: b.name }),
        Object.assign(document.createElement("dd"), { className: "value", textContent: percent(share(b, n)) }));
      return tile;
    }));
    const bar = { name: "", look: "yours", points: [[n, 1e-9], [n, 1]] };
    dragged = plot("found", { x: [1, 1e6], decades: 8, xname: "distance of the needle (tokens)", lines: [...lines, bar],
      yname: "share of the attention on the needle", label: `Attention on a needle ${n} tokens back: ${told}` });
  };

  // 7. A formula: read by rules of its own, never run as code
  const read = (text) => {
    const tokens = text.replace(/\*\*/g, "^").replace(/−/g, "-").match(/(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[a-z]\w*|\S/gi) || [];
    const FUNCTIONS = { log: Math.log, ln: Math.log, log1p: Math.log1p, sqrt: Math.sqrt, exp: Math.exp, sin: Math.sin, cos: Math.cos, abs: Math.abs, floor: Math.floor };
    let k = 0;
    const fail = (what) => { throw new Error(what); };
    const eat = (c) => tokens[k] === c ? (k++, true) : false;
    const sum = () => {
      let a = product();
      for (;;) {
        const f = a;
        if (eat("+")) { const g = product(); a = (n) => f(n) + g(n); }
        else if (eat("-")) { const g = product(); a = (n) => f(n) - g(n); }
        else return a;
      }
    };
    const product = () => {
      let a = sign();
      for (;;) {
        const f = a;
        if (eat("*")) { const g = sign(); a = (n) => f(n) * g(n); }
        else if (eat("/")) { const g = sign(); a = (n) => f(n) / g(n); }
        else return a;
      }
    };
    const sign = () => { if (eat("+")) return sign(); if (eat("-")) { const f = sign(); return (n) => -f(n); } return raised(); };
    const raised = () => { const f = atom(); if (!eat("^")) return f; const g = sign(); return (n) => f(n) ** g(n); };
    const atom = () => {
      const t = tokens[k++];
      if (t === undefined) fail("the formula ends too early");
      if (/^[\d.]/.test(t)) { const v = Number(t); return () => v; }
      if (t === "n") return (n) => n;
      if (t === "(") { const f = sum(); if (!eat(")")) fail("a bracket is not closed"); return f; }
      if (Object.hasOwn(FUNCTIONS, t)) {
        if (!eat("(")) fail(`${t} needs brackets`);
        const f = sum(), g = FUNCTIONS[t];
        if (!eat(")")) fail("a bracket is not closed");
        return (n) => g(f(n));
      }
      return fail(`“${t}” is not known here; known are n, numbers, + - * / ^ and ${Object.keys(FUNCTIONS).join(", ")}`);
    };
    const f = sum();
    if (k < tokens.length) fail(`“${tokens[k]}” is not expected there; products are written 2*n`);
    return f;
  };
  const yours = () => {
    const text = get("formula").value;
    get("command").textContent = `farfield check "${text.replace(/["\\$`]/g, "")}"`;
    try {
      const points = kept(read(text));
      get("asked").hidden = false;
      get("formula-said").textContent = "Blue: the share that the nearest 64 tokens keep under your bias. Float64.";
      plot("own", { x: [64, 1e9], xname: "length of the text (tokens)", yname: "share of the nearest 64 tokens", label: "Share of the nearest 64 tokens under your formula",
        lines: [...context, { name: "yours", look: "yours", points }] });
    } catch (error) { get("asked").hidden = !/picture/.test(error.message); get("formula-said").textContent = `${error.message}.`; get("own").textContent = ""; }
  };

  // 8. The papers
  const NAMES = { qin2024: "Qin et al. 2024", sun2023: "Sun et al. 2023", chi2023: "Chi et al. 2023" };
  const said = (verdict) => verdict.replaceAll("_", " ");
  const dots = [];
  const choose = (k) => {
    const c = told.claims[k];
    dots.forEach((d, i) => { d.setAttribute("aria-pressed", i === k); d.tabIndex = i === k ? 0 : -1; });
    get("claim").replaceChildren(...[[`${NAMES[c.paper]}, ${c.where}`, `“${c.quote}”`], ["read here as", c.read], ["verdict", c.said ? `${said(c.verdict)}: ${c.said}` : said(c.verdict)]]
      .flatMap(([a, b]) => [Object.assign(document.createElement("dt"), { textContent: a }), Object.assign(document.createElement("dd"), { textContent: b })]));
    get("claim-command").textContent = `farfield claims ${c.id}`;
  };
  told.claims.forEach((c, k) => {
    if (!k || told.claims[k - 1].paper !== c.paper) get("dots").append(Object.assign(document.createElement("h3"), { textContent: NAMES[c.paper] }));
    const dot = Object.assign(document.createElement("button"), { type: "button" });
    dot.setAttribute("aria-label", `${c.id}: ${said(c.verdict)}`);
    dot.append(Object.assign(document.createElement("span"), { className: `dot ${c.verdict}` }));
    dot.addEventListener("click", () => { choose(k); keep(); });
    dot.addEventListener("keydown", (e) => {
      const next = k + ({ ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key] || 0);
      if (next !== k && dots[next]) { e.preventDefault(); choose(next); dots[next].focus(); keep(); }
    });
    dots.push(dot);
    get("dots").append(dot);
  });

  // The state stands in the address.
  const INPUTS = ["cursor", "r", "window", "beta", "slope", "n", "g", "formula"];
  const first = Math.max(0, told.claims.findIndex((c) => c.verdict === "wrong"));
  const spoken = () => ["r", "window", "beta", "n", "g"].forEach((id) => get(id).setAttribute("aria-valuetext", get(`${id}-value`).value));
  const keep = () => {
    spoken();
    const state = new URLSearchParams(INPUTS.map((id) => [id, get(id).value]));
    state.set("heads", [...document.querySelectorAll(".head")].map((b) => b.getAttribute("aria-pressed") === "true" ? 1 : 0).join(""));
    state.set("ladder", [...document.querySelectorAll("[data-ladder]")].findIndex((b) => b.getAttribute("aria-pressed") === "true"));
    state.set("claim", told.claims[dots.findIndex((d) => d.getAttribute("aria-pressed") === "true")].id);
    history.replaceState(null, "", `#${state}`);
  };
  const DRAW = { cursor: fade, r: boundary, window: rotation, beta: rotation, slope: heads, n: needle, g: needle, formula: yours };
  const state = new URLSearchParams(location.hash.slice(1));
  for (const id of INPUTS) {
    if (state.has(id)) { const before = get(id).value; get(id).value = state.get(id).slice(0, 120); if (!get(id).value && id !== "formula") get(id).value = before; }
    get(id).addEventListener("input", () => { DRAW[id](); keep(); });
  }
  document.querySelectorAll(".head").forEach((b, k) => {
    if (/^[01]{8}$/.test(state.get("heads"))) b.setAttribute("aria-pressed", state.get("heads")[k] === "1");
    b.addEventListener("click", () => { b.setAttribute("aria-pressed", b.getAttribute("aria-pressed") !== "true"); heads(); keep(); });
  });
  const rungs = document.querySelectorAll("[data-ladder]");
  rungs.forEach((b, k) => b.addEventListener("click", () => { ladder(k); keep(); }));
  ladder(Math.min(rungs.length - 1, Math.max(0, Math.trunc(state.get("ladder")) || 0)));
  const asked = told.claims.findIndex((c) => c.id === state.get("claim"));
  choose(asked < 0 ? first : asked);
  const all = () => { fade(); boundary(); rotation(); heads(); needle(); yours(); };
  let drawn = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== drawn) { drawn = innerWidth; all(); } });
  addEventListener("hashchange", () => location.reload());
  all();
  spoken();
})();
