"use strict";
// A page of fcn-gen check, from the report in JSON (docs/check.md).
(() => {
  const { el, show, table, list, data, add, done } = page;
  const results = { failed: ["failed", "bad"], noted: ["noted", "warn"], passed: ["passed", "good"], not_tested: ["not tested", "dim"] };
  const order = Object.keys(results);
  const name = data.dut ?? data.device;
  const [says, kind] = { passed: ["passed", "good"], failed: ["failed", "bad"], inconclusive: ["inconclusive", "warn"] }[data.verdict];
  document.title = `${name}: ${says}`;
  const of = (result) => data[result];
  add(el("header", {}, el("h1", {}, `${name} as ${data.role}: `, el("span", { class: kind }, says)),
    el("p", { class: "dim" }, `${data.date}, ${data.made_by}; ${data.ended}, after ${show.span(data.seconds * 1e9)}.`),
    el("ul", { class: "lead" }, el("li", {}, order.map((result) => `${show.count(of(result))} ${results[result][0]}`).join(", "), "."))));

  const know = [];
  const core = data.tests.filter((test) => test.core && test.result === "not_tested");
  if (core.length > 0) know.push(`Core tests that could not be done, without which a check is inconclusive: ${core.map(({ id }) => id).join(", ")}.`);
  if (data.off) know.push("The device was in its default configuration: what has to be off by default was tested.");
  if (data.speed !== 1) know.push(`Played at ${data.speed} times the scenario’s speed; times and rates here are the scenario’s.`);
  if (data.frames_left_out > 0) know.push(`${show.count(data.frames_left_out)} frames were not recorded, for lack of room.`);
  for (const { interface: at, lost, refused } of data.links) {
    if (lost === null) know.push(`Whether this machine lost frames on ${at} is unknown.`);
    if (lost > 0) know.push(`This machine lost ${show.count(lost)} frames on ${at} before it read them.`);
    if (refused > 0) know.push(`The link ${at} refused ${show.count(refused)} frames.`);
  }
  if (know.length > 0) {
    add(el("aside", { class: "know" }, el("strong", {}, "What to know beside that"), el("ul", {}, know.map((text) => el("li", {}, text)))));
  }

  if (data.latency.length > 0) {
    add(el("section", {}, el("h2", {}, "Latency"), table({ caption: "Of the device’s reactions, in the scenario’s time", rows: data.latency, columns: [
      { title: "Between", cell: ({ what }) => what },
      { title: "Reactions", number: true, cell: ({ count }) => show.count(count) },
      ...[["p50", "p50_ns"], ["p99", "p99_ns"], ["Longest", "longest_ns"]].map(([title, key]) => ({ title, number: true, cell: (one) => show.span(one[key]) })),
    ] })));
  }

  /** Frames of a rule that are shown at once. */
  const SHOWN = 3;
  const decoded = new Map(data.decoded.map((frame) => [frame.number, frame]));
  const frame = (number) => {
    const shown = decoded.get(number);
    const where = shown && `${shown.from_device ? "from" : "to"} the device at ${shown.interface}, ${show.span(shown.at_ns)}: ${shown.text}`;
    return el("div", { class: "small" }, `frame ${number}${where ? `, ${where}` : ""}`);
  };
  const why = (test) => {
    if (!test.why && test.frames.length === 0) return null;
    const times = test.times > 1 ? ` (${show.count(test.times)} times)` : "";
    const [shown, rest] = [test.frames.slice(0, SHOWN), test.frames.slice(SHOWN)];
    return el("div", {}, test.why ? `${test.why}${times}` : "", shown.map(frame),
      rest.length > 0 ? el("details", {}, el("summary", {}, `${rest.length} more frames`), rest.map(frame)) : null);
  };
  const rows = data.tests.map((test, place) => ({ test, place }))
    .sort((a, b) => order.indexOf(a.test.result) - order.indexOf(b.test.result) || a.place - b.place).map(({ test }) => test);
  add(el("section", {}, el("h2", {}, "Rules"),
    table({ caption: "Each rule with its source; failures first. Numbers of frames are those of packets.pcapng.", rows, columns: [
      { title: "Result", value: (test) => order.indexOf(test.result), cell: ({ result }) => el("span", { class: results[result][1] }, results[result][0]) },
      { title: "Rule", value: (test) => test.id, cell: (test) => el("div", {}, el("code", {}, test.id), el("div", { class: "small dim" }, test.section)) },
      { title: "Statement", about: "What the source requires, or what breaks it", wide: true, cell: (test) => (test.forbidden ? `Forbidden: ${test.text}` : test.text) },
      { title: "Judged", about: "How often the device’s behaviour allowed a verdict", number: true, value: (test) => test.judged,
        cell: (test) => (test.judged > 0 ? show.count(test.judged) : null) },
      { title: "Reason, and the frames that show it", wide: true, cell: why },
    ] })));

  add(el("section", {}, el("h2", {}, "How it was tested"),
    list([["Command", el("code", {}, data.command)], ["Scenario", data.scenario], ["Node of the device", data.device], ...data.settings]),
    el("h3", {}, "Code points"), list(data.code_points),
    el("h3", {}, "ICRC of the device’s notifications"),
    data.icrc.length > 0
      ? list(data.icrc.map(({ reading, meaning, frames }) => [reading, `${meaning} (${show.count(frames)} frames)`]))
      : el("p", {}, "The device sent no CNP."),
    el("p", { class: "small dim" }, "No specification says how extension headers count in the ICRC; every reading is accepted."),
    table({ caption: "Links", rows: data.links, columns: [
      { title: "Interface", cell: (link) => link.interface },
      { title: "Played", cell: (link) => link.peer },
      { title: "Frames sent and received by", wide: true, cell: (link) => link.mode },
    ] }),
    table({ caption: "Steps", rows: data.steps, columns: [
      { title: "Step", cell: (step) => step.id },
      { title: "From", number: true, cell: (step) => show.span(step.begin_ns) },
      { title: "To", number: true, cell: (step) => show.span(step.end_ns) },
      { title: "Frames", number: true, cell: (step) => show.count(step.frames) },
      { title: "Content", wide: true, cell: (step) => step.what },
    ] })));
  add(el("footer", { class: "small dim" }, el("p", {}, `Made by ${data.made_by}. Nothing was loaded to show this page; its data can be read as JSON in the element “data” of its source, and all frames in packets.pcapng.`)));
  done();
})();
