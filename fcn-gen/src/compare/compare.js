"use strict";
// A page of fcn-gen compare, from the data that `html.rs` describes.
(() => {
  const { el, show, table, axis, chart, data, add, done } = page;
  const { comparison, groups } = data;
  const seeds = comparison.seeds === 1 ? `seed ${comparison.first_seed}` : `${comparison.seeds} seeds from ${comparison.first_seed} on`;
  document.title = `${comparison.scenario}: mechanisms compared`;
  add(el("header", {}, el("h1", {}, `${comparison.scenario}: who slows down how soon, and what it costs`),
    el("p", { class: "dim" }, `Simulated, ${seeds}${comparison.over ? `, over ${comparison.over}` : ""}.`)));
  const lines = (text) => el("div", {}, text.split("\n").map((line, place) => el("div", { class: place > 0 && "small dim" }, line)));

  if (comparison.over) {
    const mechanisms = [...new Set(groups.flatMap((group) => group.reactions.map(({ mechanism }) => mechanism)))];
    const cell = (group, mechanism) => group.reactions.find((one) => one.mechanism === mechanism)?.cell;
    add(el("section", {}, el("h2", {}, `Reaction time over ${comparison.over}`),
      table({ caption: "From the onset of congestion to the first sender that slows down: median, and range over the seeds", rows: mechanisms, columns: [
        { title: "Mechanism", cell: (mechanism) => mechanism },
        ...groups.map((group) => ({ title: group.value, number: true, cell: (mechanism) => {
          const text = cell(group, mechanism);
          return text === undefined ? null : lines(text);
        } })),
      ] })));
  }
  for (const group of groups) {
    const title = group.value === null ? "What it comes to" : `${comparison.over} ${group.value}`;
    const parts = [el("h2", {}, title), el("p", {}, group.sentence)];
    if (group.remarks.length > 0) {
      parts.push(el("aside", { class: "know" }, el("strong", {}, "What to know beside that"),
        el("ul", {}, group.remarks.map((remark) => el("li", {}, remark)))));
    }
    parts.push(table({ caption: group.heading, rows: group.rows, columns: [
      { title: "Figure", cell: ([label]) => label },
      ...group.mechanisms.map((mechanism, place) => ({ title: mechanism, number: true, cell: ([, cells]) => lines(cells[place]) })),
    ] }));
    const count = Math.max(0, ...group.lines.map(({ queue }) => queue.length));
    if (count > 0 && group.step_ns) {
      const time = axis({ name: group.value === null ? "Time" : `Time (${title})`, start: 0, step: group.step_ns, count, busy: Infinity, format: show.span });
      // Of several samples together, the deepest queue, and the mean of the rates.
      const bins = (values, size, of) => Array.from({ length: Math.ceil(count / size) }, (_, bin) => {
        const part = values.slice(bin * size, (bin + 1) * size);
        return part.length > 0 ? of(part) : null;
      });
      const mean = (part) => part.reduce((sum, value) => sum + value, 0) / part.length;
      const series = (name, of) => group.lines.map((one) => ({ label: one.mechanism, line: one.line, values: (size) => bins(one[name], size, of) }));
      const first = `Of seed ${comparison.first_seed}`;
      const queue = chart({ title: "Deepest egress queue", note: `${first}; the most in each step.`, axis: time, format: show.octets, series: series("queue", (part) => Math.max(...part)) });
      const rate = chart({ title: "Sum of senders’ rates", note: `${first}; the mean of the samples in each step.`, axis: time, format: show.bits, series: series("rate", mean) });
      parts.push(el("h3", {}, "Over time"), time.bar, queue.figure, rate.figure);
    }
    add(el("section", {}, ...parts));
  }
  add(el("footer", { class: "small dim" }, el("p", {}, `Made by ${data.made_by}. Nothing was loaded to show this page; its data can be read as JSON in the element “data” of its source. Charts by uPlot.`)));
  done();
})();
