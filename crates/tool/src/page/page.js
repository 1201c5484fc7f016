"use strict";
// What all pages share: elements, numbers with their units, tables, charts. Whatever comes from the data goes into the page as
// text (`append` of a string makes a text node), never as markup, an address or a style.
const page = (() => {
  const root = document.documentElement;
  const main = document.getElementById("page");

  function fail(what) {
    root.dataset.state = "failed";
    main.prepend(el("p", { class: "failed", role: "alert" }, `This page could not be drawn whole: ${what}`));
  }
  addEventListener("error", (event) => fail(event.message));
  addEventListener("securitypolicyviolation", (event) => fail(`its policy forbade ${event.violatedDirective}`));

  /** An element; `on…` are listeners, all else attributes, and whatever is undefined or false is left out. */
  function el(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== undefined && value !== false) element.setAttribute(key, value);
    }
    element.append(...children.flat().filter((child) => child !== undefined && child !== null));
    return element;
  }

  /** What is too wide or too high for the page: keys scroll it, too. */
  const scroll = (kind, name, ...children) => el("div", { class: kind, tabindex: "0", role: "group", "aria-label": name }, ...children);

  // Numbers.

  const digits = (value) => (value >= 100 ? 0 : value >= 10 ? 1 : 2);
  const short = (value) => String(Number(value.toFixed(digits(Math.abs(value)))));
  function scaled(value, unit, steps) {
    const size = Math.abs(value);
    for (const [factor, prefix] of steps) if (size >= factor) return `${short(value / factor)} ${prefix}${unit}`;
    return `${short(value)} ${unit}`;
  }
  const THOUSANDS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const show = {
    count: (value) => Math.round(value).toLocaleString("en"),
    rate: (value) => (value >= 1000 ? show.count(value) : value > 0 && value < 0.005 ? "<0.01" : short(value)),
    bits: (value) => (value === 0 ? "0" : scaled(value, "bit/s", THOUSANDS)),
    octets: (value) => (value === 0 ? "0" : scaled(value, "B", THOUSANDS)),
    share: (value) => `${(value * 100).toFixed(value > 0 && value < 0.0995 ? 1 : 0)} %`,
    change: (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${show.share(Math.abs(value))}`,
    /** Nanoseconds. */
    span: (value) => {
      const long = [[8.64e14, 8.64e13, "d"], [3.6e12, 3.6e12, "h"], [1e12, 6e10, "min"]].find(([least]) => Math.abs(value) >= least);
      if (long) return `${short(value / long[1])} ${long[2]}`;
      return value === 0 ? "0" : scaled(value / 1e9, "s", [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]]);
    },
    hex: (value, width = 0) => `0x${value.toString(16).padStart(width, "0")}`,
  };

  // Tables.

  /** Rows to a page of a table on the screen; paper has all that were found. */
  const ROWS = 50;
  let printing = false;
  addEventListener("beforeprint", () => { printing = true; });
  addEventListener("afterprint", () => { printing = false; });
  const compare = (a, b) => {
    if (a === b) return 0;
    if (a === null || a === undefined) return 1;
    if (b === null || b === undefined) return -1;
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  };

  /**
   * A table that can be sorted and searched. Columns: `title`, `about`, `cell(row)` (text or element), `value(row)` to sort by,
   * `number` for figures, `wide` for sentences. `more(row)` has what stands below a row that was opened.
   */
  function table({ caption, columns, rows, more }) {
    let order = null, found = rows, first = 0;
    const body = el("tbody"), state = el("span", { class: "small dim", role: "status" });
    const back = el("button", { type: "button", onclick: () => turn(first - ROWS) }, "Rows before");
    const on = el("button", { type: "button", onclick: () => turn(first + ROWS) }, "Rows after");
    const heads = columns.map((column) => {
      const mark = el("span", { "aria-hidden": "true" });
      const button = el("button", { type: "button", title: column.about, onclick: () => sort(column) }, column.title, mark);
      const head = el("th", { scope: "col", class: column.number && "number" }, column.value ? button : column.title);
      return { column, head, mark };
    });
    const titles = [...heads.map(({ head }) => head), more ? el("th", { scope: "col", class: "screen" }, "More") : null];
    const label = `Search: ${caption}`;
    const search = el("input", { type: "search", placeholder: "Search", "aria-label": label, oninput: () => find(search.value) });
    const text = (row) => columns.map((column) => {
      const cell = column.cell(row);
      return cell instanceof Node ? cell.textContent : cell;
    }).join(" ").toLowerCase();
    let texts = null;

    function find(words) {
      texts ??= new Map(rows.map((row) => [row, text(row)]));
      const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
      found = rows.filter((row) => wanted.every((word) => texts.get(row).includes(word)));
      arrange();
    }
    function sort(column) {
      // Figures: the greatest first.
      const falls = order?.column === column ? !order.falls : Boolean(column.number);
      order = { column, falls };
      for (const { column: other, head, mark } of heads) {
        if (other === column) head.setAttribute("aria-sort", falls ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
        mark.textContent = other === column ? (falls ? " ▼" : " ▲") : "";
      }
      arrange();
    }
    function arrange() {
      if (order) {
        const { value } = order.column;
        const missing = (row) => value(row) === null || value(row) === undefined;
        found = [...found].sort((a, b) => {
          if (missing(a) || missing(b)) return missing(a) - missing(b);
          return order.falls ? compare(value(b), value(a)) : compare(value(a), value(b));
        });
      }
      turn(0);
    }
    function turn(to) {
      first = Math.max(0, Math.min(to, Math.floor(Math.max(0, found.length - 1) / ROWS) * ROWS));
      const shown = printing ? found : found.slice(first, first + ROWS);
      body.replaceChildren(...shown.flatMap(line));
      const range = found.length > shown.length ? `${show.count(first + 1)} to ${show.count(first + shown.length)} of ` : "";
      const of = found.length < rows.length ? ` (of ${show.count(rows.length)})` : "";
      state.textContent = `Rows: ${range}${show.count(found.length)}${of}`;
      back.disabled = first === 0;
      on.disabled = first + ROWS >= found.length;
    }
    function line(row) {
      const cells = columns.map((column, number) => {
        const name = number === 0 ? "th" : "td";
        const kind = column.number ? "number" : column.wide ? "wide" : undefined;
        return el(name, { scope: number === 0 && "row", class: kind }, column.cell(row) ?? "–");
      });
      if (!more) return [el("tr", {}, cells)];
      let below = null;
      const button = el("button", { type: "button", class: "more", "aria-expanded": "false", onclick: () => {
        below.hidden = !below.hidden;
        if (!below.firstChild) below.append(el("td", { colspan: columns.length + 1 }, more(row)));
        button.setAttribute("aria-expanded", String(!below.hidden));
      } }, "Details");
      below = el("tr", { hidden: "" });
      return [el("tr", {}, cells, el("td", { class: "screen" }, button)), below];
    }
    turn(0);
    for (const event of ["beforeprint", "afterprint"]) addEventListener(event, () => { if (found.length > ROWS) turn(first); });
    const bar = el("div", { class: "bar" }, rows.length > 5 ? search : null, state,
      rows.length > ROWS ? [back, on] : null);
    return el("div", {}, bar, scroll("scroll", caption,
      el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, titles)), body)));
  }

  /** Names and what belongs to them. */
  const list = (pairs) => el("dl", {}, pairs.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));

  // Charts.

  /** Lines of a chart at most. */
  const LINES = 8;
  // First for lines of any meaning but a verdict's, so none red or green; those with the same dash differ by 17 at least
  // (CIEDE2000), also to colour-blind eyes. Then for kinds of notifications, those of fcn-top's screen.
  const PALETTES = {
    light: { text: "#1a1f26", grid: "#d9dee5", rest: "#5c6773",
      lines: ["#0b6e99", "#5546bd", "#7a4a1c", "#4f6a00", "#b04f00", "#00857c", "#26302b", "#e0007a",
        "#005fd7", "#d70087", "#5f005f", "#0000d7", "#875f00"] },
    dark: { text: "#e6eaef", grid: "#333c46", rest: "#a3aebb",
      lines: ["#5ec8f2", "#a99cff", "#d9b48f", "#c5d86d", "#f2b25c", "#1fd1c1", "#ffffff", "#ff4fa3",
        "#87ffff", "#ff00ff", "#d787af", "#d7afff", "#ffff00"] },
  };
  const WHOLE = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((factor) => factor * 10 ** power)).flat();
  // Of nanoseconds: decimal below a minute, and then as clocks and days have it.
  const SPANS = [...WHOLE.filter((span) => span < 6e10), ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 6e10),
    ...[1, 2, 3, 6, 12].map((hours) => hours * 3.6e12), ...WHOLE.map((days) => days * 8.64e13)];
  const DASHES = [[], [8, 4], [2, 3], [12, 3, 2, 3]];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const palette = () => PALETTES[dark.matches && !printing ? "dark" : "light"];
  const drawn = [];
  const redraw = () => drawn.forEach((chart) => chart.draw());
  dark.addEventListener("change", redraw);
  addEventListener("beforeprint", redraw);
  addEventListener("afterprint", redraw);

  /** Most bins that are drawn unless others are chosen, and least. */
  const BINS = [16, 128];

  /**
   * A time axis that charts share: from `from` on, `count` steps of `step` nanoseconds from `start` on, before which there is nothing: where that is later, a bin more.
   * Charts draw bins of whole steps, whose length can be chosen; by
   * itself it is such that there are not too many, and in most of them `busy` is 5 or more, where that leaves 16.
   */
  function axis({ name, start, from = start, step, count, busy, format }) {
    const whole = [from, start + count * step];
    const empty = from < start ? 1 : 0;
    const shown = el("span", { class: "small dim", role: "status" });
    const charts = [];
    const it = { name, format, whole, range: whole, charts, set, zoom, move, bar: null, size: 1, length: () => it.size * step, empty, bins: () => empty + Math.ceil(count / it.size), edge };
    function edge(bin) {
      return bin < empty ? from : Math.min(Math.max(start + (bin - empty) * it.size * step, from), whole[1]);
    }
    const sizes = [];
    for (let size = 1; size === 1 || count / size >= 8; size *= 2) sizes.push(size);
    const choice = el("select", { onchange: () => set(...it.range) },
      el("option", { value: "0" }, "fitting"), sizes.map((size) => el("option", { value: String(size) }, format(size * step))));
    function fitting() {
      const steps = (it.range[1] - it.range[0]) / step;
      let size = 1;
      while (steps / size > BINS[1] || (busy / (count / size) < 5 && steps / size > 2 * BINS[0])) size *= 2;
      return size;
    }
    function set(from, to) {
      const length = Math.min(Math.max(to - from, 2 * step), whole[1] - whole[0]);
      const first = Math.min(Math.max(from, whole[0]), whole[1] - length);
      it.range = [first, first + length];
      const before = it.size;
      it.size = Number(choice.value) || fitting();
      shown.textContent = `Shown: ${format(it.range[0])} to ${format(it.range[1])}, in steps of ${format(it.length())}`;
      charts.forEach((chart) => (it.size === before ? chart.follow() : chart.draw()));
    }
    function zoom(factor, at = (it.range[0] + it.range[1]) / 2) {
      set(at - (at - it.range[0]) * factor, at + (it.range[1] - at) * factor);
    }
    function move(part) {
      const by = (it.range[1] - it.range[0]) * part;
      set(it.range[0] + by, it.range[1] + by);
    }
    const button = (label, text, onclick) => el("button", { type: "button", "aria-label": label, title: label, onclick }, text);
    it.bar = el("div", { class: "bar sticky", role: "group", "aria-label": `${name} shown in all charts` },
      button("Zoom in", "+", () => zoom(0.5)), button("Zoom out", "−", () => zoom(2)),
      button("Back", "←", () => move(-0.5)), button("Forward", "→", () => move(0.5)),
      button("Show all", "All", () => set(...whole)), el("label", { class: "small" }, "Steps ", choice), shown);
    set(...whole);
    return it;
  }

  /** Sums over bins of so many steps. */
  function sums(values, size) {
    if (size === 1) return values;
    const bins = new Array(Math.ceil(values.length / size)).fill(0);
    values.forEach((value, place) => { bins[Math.floor(place / size)] += value; });
    return bins;
  }

  /**
   * A chart of lines over an axis. Series: `label`, `values(size)` (a figure or null for each bin of so many steps), and `line`, the
   * number of its colour, below `LINES` or that of a kind behind them, or "rest". `format` writes a figure; `top` is the greatest
   * that there can be; `dots` are drawn where lines have gaps, and `integer` is for counts.
   */
  function chart({ title, note, axis, format, top, dots, integer, series }) {
    const plot = el("div", { class: "plot", tabindex: "0", role: "group",
      "aria-label": `Chart: ${title}. Arrow keys move the cursor, + and − zoom, 0 shows all. A table of the figures follows.` });
    const readout = el("p", { class: "readout dim" });
    const legend = el("ul", { class: "legend" });
    const figures = scroll("scroll low", `Figures: ${title}`);
    const details = el("details", { class: "screen", ontoggle: () => tabulate() }, el("summary", {}, "The figures as a table"), figures);
    const hidden = new Set();
    let u = null, step = null, bins = [], x = [];
    const colour = ({ line }) => (line === "rest" ? palette().rest : palette().lines[line % palette().lines.length]);
    const dash = ({ line }) => (line === "rest" ? DASHES[2] : DASHES[line % DASHES.length]);

    function draw() {
      const { text, grid } = palette();
      u?.destroy();
      step = null;
      readout.textContent = "";
      bins = series.map(({ values }) => [...new Array(axis.empty).fill(dots ? null : 0), ...values(axis.size)]);
      x = Array.from({ length: axis.bins() + 1 }, (_, bin) => axis.edge(bin));
      const width = Math.max(280, printing ? 680 : plot.clientWidth);
      const line = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "12px system-ui, sans-serif" };
      const options = {
        width, height: 220, legend: { show: false },
        scales: { x: { time: false, range: () => axis.range }, y: { range: (_, low, high) => [0, top ?? (high > 0 ? high * 1.06 : 1)] } },
        axes: [{ ...line, space: 90, size: 32, incrs: SPANS, values: (_, ticks) => ticks.map(axis.format) },
          { ...line, size: 84, ...(integer ? { incrs: WHOLE } : {}), values: (_, ticks) => ticks.map(format) }],
        series: [{}, ...series.map((one, number) => ({
          label: one.label, stroke: colour(one), dash: dash(one), width: 1.75, show: !hidden.has(number),
          paths: uPlot.paths.stepped({ align: 1 }), points: { show: Boolean(dots), size: 4 },
        }))],
        cursor: { sync: { key: axis.name }, drag: { x: true, y: false, setScale: false }, focus: { prox: 24 }, points: { size: 6 },
          bind: { dblclick: () => () => axis.set(...axis.whole) } },
        hooks: {
          setSelect: [(self) => {
            const { left, width: wide } = self.select;
            if (wide > 3) axis.set(self.posToVal(left, "x"), self.posToVal(left + wide, "x"));
            self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          }],
          setCursor: [(self) => read(self)],
        },
      };
      // A step holds until the next one begins.
      const columns = bins.map((values) => [...values, values[values.length - 1] ?? null]);
      u = new uPlot(options, [x, ...columns], plot);
      label();
      tabulate();
    }
    function label() {
      legend.replaceChildren(...series.map((one, number) => {
        const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
        swatch.style.borderTop = `3px ${dash(one).length ? (dash(one)[0] > 4 ? "dashed" : "dotted") : "solid"} ${colour(one)}`;
        const button = el("button", { type: "button", "aria-pressed": String(!hidden.has(number)), onclick: () => {
          hidden.has(number) ? hidden.delete(number) : hidden.add(number);
          button.setAttribute("aria-pressed", String(!hidden.has(number)));
          u.setSeries(number + 1, { show: !hidden.has(number) });
        } }, swatch, one.label);
        return el("li", {}, button);
      }));
    }
    /** The step that a place lies in: of two points beside it the one before. */
    function read(self) {
      const { left } = self.cursor;
      if (!(left >= 0)) return;
      const at = self.posToVal(left, "x");
      const nearest = self.posToIdx(left);
      step = Math.min(Math.max(x[nearest] > at ? nearest - 1 : nearest, 0), axis.bins() - 1);
      readout.textContent = `${axis.format(x[step])} to ${axis.format(x[step + 1])}: ${series.map(({ label }, number) =>
        `${label} ${figure(bins[number][step])}`).join("; ")}`;
    }
    const figure = (value) => (value === null ? "–" : format(value));
    function point(to) {
      step = Math.min(Math.max(to, 0), axis.bins() - 1);
      const middle = (x[step] + x[step + 1]) / 2;
      if (middle < axis.range[0] || middle > axis.range[1]) axis.set(middle - (axis.range[1] - axis.range[0]) / 2, middle + (axis.range[1] - axis.range[0]) / 2);
      u.setCursor({ left: u.valToPos(middle, "x"), top: 0 });
    }
    plot.addEventListener("keydown", (event) => {
      const from = step ?? x.findLastIndex((value) => value <= axis.range[0]);
      const keys = {
        ArrowLeft: () => point(from - 1), ArrowRight: () => point(from + 1), Home: () => point(0), End: () => point(axis.bins() - 1),
        "+": () => axis.zoom(0.5, x[from]), "=": () => axis.zoom(0.5, x[from]), "-": () => axis.zoom(2, x[from]), 0: () => axis.set(...axis.whole),
      };
      if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      readout.setAttribute("aria-live", "polite");
      keys[event.key]();
    });
    plot.addEventListener("pointermove", () => readout.removeAttribute("aria-live"));

    function tabulate() {
      if (!details.open) return figures.replaceChildren();
      const shown = Array.from({ length: axis.bins() }, (_, bin) => bin)
        .filter((bin) => x[bin + 1] > axis.range[0] && x[bin] < axis.range[1]);
      figures.replaceChildren(el("table", {},
        el("caption", {}, `${title}: the steps shown; zoom to have fewer`),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, `${axis.name} from`),
          series.map(({ label }) => el("th", { scope: "col", class: "number" }, label)))),
        el("tbody", {}, shown.map((bin) => el("tr", {}, el("th", { scope: "row" }, axis.format(x[bin])),
          bins.map((values) => el("td", { class: "number" }, figure(values[bin]))))))));
    }
    const it = {
      draw,
      follow() { u?.setScale("x", { min: axis.range[0], max: axis.range[1] }); tabulate(); },
      set(other) { series = other; hidden.clear(); draw(); },
      figure: el("figure", {}, el("figcaption", {}, el("strong", {}, title), note ? el("span", { class: "small dim" }, ` ${note}`) : null),
        plot, readout, legend, details),
    };
    axis.charts.push(it);
    drawn.push(it);
    let wide = 0;
    it.fit = () => {
      if (Math.abs(plot.clientWidth - wide) < 2 || printing) return;
      wide = plot.clientWidth;
      draw();
    };
    // Drawing changes sizes, which must not be while they are observed.
    new ResizeObserver(() => requestAnimationFrame(it.fit)).observe(plot);
    return it;
  }

  return {
    el, show, table, list, axis, chart, sums,
    data: JSON.parse(document.getElementById("data").textContent),
    add: (...parts) => main.append(...parts),
    /** To be called at the end: that the page is whole. */
    done() {
      drawn.forEach((chart) => chart.fit());
      root.dataset.state ??= "ready";
    },
    LINES,
  };
})();
