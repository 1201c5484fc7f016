"use strict";
// A page of fcn-top, from the data that `mod.rs` describes.
(() => {
  const { el, show, table, list, axis, chart, sums, data, add, done, LINES } = page;
  const { snapshot, course, columns, filters, know, sentences } = data;
  const { totals } = snapshot;
  const KINDS = Object.fromEntries(data.kinds);
  const about = Object.fromEntries(Object.entries(columns).map(([name, all]) => [name, new Map(all.map((column) => [column.id, column]))]));

  /** A cell as text, by what its column holds; null where there is nothing. */
  function text({ id, holds }, value) {
    if (value === null || value === undefined) return null;
    switch (holds) {
      case "count": return show.count(value);
      case "number": return String(value);
      case "qp": return show.hex(value);
      case "label": return show.hex(value, 5);
      case "rate": return show.rate(value);
      case "bits": return show.bits(value);
      case "share": return show.share(value);
      case "change": return show.change(value);
      case "span": return show.span(value);
      case "address": return host(value);
      default: return String(value);
    }
  }
  /** A moment, in nanoseconds since the first packet, in seconds with the digits that its clock seems to have. */
  function since(at) {
    const size = Math.abs(at);
    const places = [0, 3, 6, 9].find((digits) => size % 10 ** (9 - digits) === 0) ?? 9;
    return `${at < 0 ? "−" : "+"}${Math.floor(size / 1e9)}${places ? `.${String(size % 1e9).padStart(9, "0").slice(0, places)}` : ""} s`;
  }
  const host = (address) => data.names[address] ?? address;
  const filter = (words) => el("code", {}, words);

  // What happened.

  const source = data.read.join(", ");
  document.title = source ? `${source}: congestion notifications` : "Congestion notifications";
  add(el("header", {},
    el("h1", {}, "Notified senders, and whether they slowed down"),
    el("p", { class: "dim" }, [source, data.time].filter(Boolean).join(": ")),
    data.part ? el("p", {}, el("strong", {}, `Only part of the input was analysed: ${data.part}.`)) : null));
  add(el("section", { "aria-label": "What happened" },
    el("ol", { class: "lead" }, sentences.map((sentence) => el("li", {}, sentence)))));
  if (know.length > 0) {
    add(el("aside", { class: "know", "aria-label": "Caveats" },
      el("strong", {}, "Caveats"), el("ul", {}, know.map((line) => el("li", {}, line)))));
  }

  // Over time.

  const steps = course.data.length;
  const rows = snapshot.rows.map((row, place) => ({ row, place, filter: filters.rows[place], since: data.rows_since[place], by: data.rows_by[place] }));
  const key = ({ sender, receiver, receiver_qp }) => `${sender} ${receiver} ${receiver_qp}`;
  const rowOf = new Map(rows.map(({ row }) => [key(row), row]));
  let choose = null;

  function flowName(flow) {
    const own = rowOf.get(key(flow))?.sender_qp;
    const qp = own === null || own === undefined ? `receiver’s QP ${show.hex(flow.receiver_qp)}` : `QP ${show.hex(own)}`;
    return `${host(flow.sender)} → ${host(flow.receiver)}, ${qp}`;
  }
  function charts() {
    const packets = (flow) => flow.data.reduce((sum, count) => sum + count, 0);
    const time = axis({
      name: "Time", start: course.start, from: 0, step: course.step, count: steps, busy: Math.max(0, ...course.flows.map(packets)),
      format: show.span,
    });
    const kinds = Object.entries(course.notifications);
    const told = chart({
      title: "Notifications in each step, by kind", axis: time, format: show.count, integer: true,
      series: kinds.map(([kind, counts]) => ({
        label: KINDS[kind] ?? kind, line: LINES + Object.keys(KINDS).indexOf(kind), values: (size) => sums(counts, size),
      })),
    });

    // A flow over all steps.
    const all = (flow, name) => {
      const values = new Array(steps).fill(0);
      flow[name].forEach((value, place) => { values[flow.from + place] = value; });
      return values;
    };
    const flows = course.flows.map((flow, place) => ({ flow, place, name: flowName(flow) }));
    // Each keeps its line while it is chosen.
    const lines = new Map();
    const pick = (one) => {
      const used = new Set(lines.values());
      const free = Array.from({ length: LINES }, (_, line) => line).find((line) => !used.has(line));
      if (free !== undefined) lines.set(one, free);
    };
    flows.slice(0, 5).forEach(pick);

    const sumOfKinds = kinds.reduce((sum, [, counts]) => sum.map((value, place) => value + counts[place]), new Array(steps).fill(0));
    const rest = (name, chosen) => (name === "told" ? sumOfKinds : course[name]).map((value, place) =>
      Math.max(0, value - chosen.reduce((sum, values) => sum + values[place], 0)));
    function series() {
      const chosen = flows.filter((one) => lines.has(one)).map((one) => ({
        label: one.name, line: lines.get(one), flow: one.flow,
        octets: all(one.flow, "octets"), data: all(one.flow, "data"), ce: all(one.flow, "ce"), told: all(one.flow, "notifications"),
      }));
      const others = totals.flows + totals.flows_evicted - chosen.length;
      const sum = (name) => rest(name, chosen.map((one) => one[name]));
      const lot = [...chosen];
      const told = rest("told", chosen.map((one) => one.told));
      const othersTold = told.some((count) => count > 0) ? [{ label: "Other and unknown flows", line: "rest", told }] : [];
      if (others > 0) {
        lot.push({ label: `Other flows (data flows: ${show.count(others)})`, line: "rest", octets: sum("octets"), data: sum("data"), ce: sum("ce") });
      }
      const share = (ce, data) => ce.map((count, bin) => (data[bin] > 0 ? Math.min(1, count / data[bin]) : null));
      return {
        rate: lot.map((one) => ({ ...one, values: (size) => sums(one.octets, size).map((octets) => octets * 8e9 / (size * course.step)) })),
        marks: lot.map((one) => ({ ...one, values: (size) => share(sums(one.ce, size), sums(one.data, size)) })),
        told: [...chosen.filter(({ flow }) => flow.notified > 0), ...othersTold].map((one) => ({ ...one, values: (size) => sums(one.told, size) })),
      };
    }
    const first = series();
    const rate = chart({ title: "Data rate, by flow", note: "of IP packets. The first and last steps may be partial: their rates are then too low.", axis: time, format: show.bits, series: first.rate });
    const notified = chart({ title: "Notifications in each step, by flow", note: "as far as the flow was known on arrival.", axis: time, format: show.count, integer: true, series: first.told });
    const marks = chart({ title: "Fraction of the data marked CE, by flow", note: "Empty where there was no data.", axis: time, format: show.share, top: 1, dots: true, series: first.marks });

    const state = el("p", { class: "small dim", role: "status" });
    const boxes = flows.map((one) => {
      const box = el("input", { type: "checkbox", onchange: () => {
        if (box.checked) pick(one);
        else lines.delete(one);
        refresh();
      } });
      return { one, box, label: el("label", {}, box, ` ${one.name} (notifications: ${show.count(one.flow.notified)})`) };
    });
    function refresh() {
      for (const { one, box } of boxes) {
        box.checked = lines.has(one);
        box.disabled = !box.checked && lines.size >= LINES;
      }
      state.textContent = `${lines.size} of ${show.count(flows.length)} drawn, at most ${LINES}.`;
      const { rate: rates, marks: shares, told: counts } = series();
      rate.set(rates);
      notified.set(counts);
      marks.set(shares);
    }
    for (const { one, box } of boxes) box.checked = lines.has(one);
    state.textContent = `${lines.size} of ${show.count(flows.length)} drawn, at most ${LINES}.`;
    const byKey = new Map(flows.map((one) => [key(one.flow), one]));
    choose = (row) => {
      const one = byKey.get(key(row));
      if (!one) return null;
      return () => {
        if (!lines.has(one) && lines.size >= LINES) lines.delete([...lines.keys()][lines.size - 1]);
        if (!lines.has(one)) pick(one);
        refresh();
        rate.figure.scrollIntoView({ block: "center" });
      };
    };
    const choice = flows.length > 1 ? el("details", { class: "screen" }, el("summary", {}, "Choose flows"), state,
      el("fieldset", { class: "choices" }, el("legend", { class: "small dim" }, "Flows, most notified first"), boxes.map(({ label }) => label))) : null;
    const isData = course.data.some((count) => count > 0);
    add(el("section", {}, el("h2", {}, "Over time"),
      el("p", { class: "dim small" }, "Time since the first packet."),
      el("p", { class: "dim small screen" }, "Drag across a chart to zoom; double-click to show all. A step may be shorter than the time between packets: choose longer steps to see rates."),
      time.bar, kinds.length > 0 ? told.figure : null,
      isData ? [choice, rate.figure, first.told.length > 0 ? notified.figure : null,
        totals.ce > 0 ? marks.figure : el("p", {}, "None of the data was marked CE.")] : el("p", {}, "No RoCEv2 data was captured.")));
  }
  if (steps > 0) charts();

  // Who was told.

  const VERDICTS = { obeys: ["good", "obeys"], does_not_obey: ["bad", "does not obey"], unclear: ["dim", "unclear"] };
  function verdict(row) {
    const [tone, words] = VERDICTS[row.verdict] ?? ["dim", row.verdict];
    const least = row.change === null || row.change >= 0 ? "" : `: at least ${show.share(-row.change)} less data`;
    if (row.verdict === null) return el("span", { class: tone }, data.no_verdict);
    const why = row.advice === null ? row.evidence : `${row.evidence}; ${row.advice} would help`;
    const few = row.verdict !== "unclear" && row.measured < data.few ? ` (${row.measured} measured)` : "";
    return el("div", {}, el("span", { class: tone }, words), few, least, why === null ? null : el("div", { class: "small dim" }, why));
  }
  function subject(row) {
    if (row.qp === null) return row.flow_label === null ? "unnamed" : `label ${show.hex(row.flow_label, 5)}`;
    return `${show.hex(row.qp)}${row.qp_side === "receiver" ? " (receiver’s)" : ""}`;
  }
  const estimated = (row, value, format) => (value === null ? null : `${row.sampled > 1 ? "~" : ""}${format(value)}`);
  const qp = (id) => about.qps.get(id);
  const rowColumns = [
    { title: "Sender → receiver", about: qp("sender").about, value: ({ row }) => row.sender, cell: ({ row }) => `${row.sender === null ? "unknown" : host(row.sender)} → ${row.receiver === null ? "unknown" : host(row.receiver)}` },
    { title: "QP", about: qp("qp").about, value: ({ row }) => row.qp, cell: ({ row }) => subject(row) },
    ...(data.differ_by_place ? [{ title: "Interface", about: qp("interface").about, value: ({ row }) => row.interface, cell: ({ row }) => row.interface }] : []),
    { title: "Kind", about: qp("kind").about, value: ({ row }) => row.kind, cell: ({ row }) => KINDS[row.kind] ?? row.kind },
    { title: "Notified by", about: qp("notifier").about, value: ({ row }) => row.notifier, cell: ({ row, by }) => `${host(row.notifier)} ${by}` },
    { title: "Total", number: true, about: qp("total").about, value: ({ row }) => row.total, cell: ({ row }) => estimated(row, row.total, show.count) },
    { title: "Mean/s", number: true, about: qp("rate_mean").about, value: ({ row }) => row.rate_mean, cell: ({ row }) => estimated(row, row.rate_mean, show.rate) },
    { title: "Peak/s", number: true, about: qp("rate_peak").about, value: ({ row }) => row.rate_peak, cell: ({ row }) => text(qp("rate_peak"), row.rate_peak) },
    { title: "CE", number: true, about: qp("ce_share").about, value: ({ row }) => row.ce_share, cell: ({ row }) => text(qp("ce_share"), row.ce_share) },
    { title: "Verdict and evidence", wide: true, about: qp("verdict").about, value: ({ row }) => row.verdict, cell: ({ row }) => verdict(row) },
  ];
  // In fcn.html, which has the packets.
  const save = (row) => (parent === window ? null : el("p", {}, el("button", { type: "button", onclick: () => parent.postMessage({ row }, "*") }, "Save its packets")));
  function details({ row, place, filter: words, since: moments }) {
    const value = (column) => (column.id in moments ? since(moments[column.id]) : text(column, row[column.id]));
    const pairs = columns.qps.map((column) => [column, value(column)]).filter(([, value]) => value !== null);
    const drawn = choose?.(row);
    return [
      words ? el("p", { class: "small" }, "Its notifications in Wireshark, with the plugin: ", filter(words)) : null,
      drawn ? el("p", {}, el("button", { type: "button", onclick: drawn }, "Show in the charts")) : null,
      save(place),
      list(pairs.map(([column, value]) => [el("span", { title: column.about }, column.id), value])),
    ];
  }
  function section(title, ...parts) {
    add(el("section", {}, el("h2", {}, title), ...parts));
  }
  section("Notified senders", rows.length > 0
    ? table({ caption: "A row for each QP or flow and kind of notification", columns: rowColumns, rows, more: details })
    : el("p", {}, totals.rows > 0 ? "No row passes the filter." : "No notification was captured."),
  data.mean_and_peak ? el("p", { class: "small dim" }, data.mean_and_peak) : null,
  el("p", { class: "small dim" }, "A verdict is inferred from whether less data follows notifications than the same flow sends at other times. Unclear means that neither can be inferred. A capture may not show that a sender slows down little or late; docs/verdicts.md of fcn-tools reports how often verdicts were wrong."));

  // The other tables, column by column.

  function plain(name, caption, lines, ids) {
    const chosen = ids.map((id) => about[name].get(id)).filter((column) => lines.some((line) => line[column.id] !== null));
    const isNumber = ({ holds }) => !["name", "text", "address", "moment"].includes(holds);
    return table({ caption, rows: lines, columns: chosen.map((column) => ({
      title: column.title, about: column.about, number: isNumber(column),
      value: (line) => line[column.id], cell: (line) => line.unknown?.[column.id] ?? text(column, line[column.id]),
    })) });
  }
  if (snapshot.notifiers.length > 0) {
    const points = snapshot.notifiers.map((point, place) => ({
      ...point, notifier_role: data.notifiers_as[place],
      // Rows tell the first four notifiers apart.
      unknown: point.flows === 0 && point.total > 0 ? { flows: "?" } : point.flows_at_least === "yes" ? { flows: `≥${show.count(point.flows)}` } : {},
    }));
    section("Notifiers", plain("notifiers", "By the source address of their notifications", points.sort((a, b) => b.total - a.total),
      ["notifier", "notifier_role", "trusted", "flows", "total", ...(snapshot.notifiers.some((point) => point.samples > 0) ? ["samples"] : []), "cnp", "fast_cnp_1", "fast_cnp_2", "proxy_cn", "wan_fcn", "rate_peak", "level_max", "queue_max", "malformed", "findings"]));
  }
  if (snapshot.flows.length > 0) {
    const flows = snapshot.flows.map((flow) => ({
      ...flow,
      unknown: flow.data_sampled > 1 ? Object.fromEntries(["data_packets", "data_octets"].map((id) => [id, `~${show.count(flow[id])}`])) : {},
    }));
    const some = ["rnr_naks", "nak_sequence", "nak_invalid_request", "nak_remote_access", "nak_remote_operation", "resent", "late", "stalls_all", "path_pauses"];
    section("Flows of data", plain("flows", "By sender, receiver and the receiver’s QP; those that stalled longest first", flows,
      ["sender", "receiver", "receiver_qp", "data_packets", "data_octets", "ce_share", "ecn", "data_dscp", "ack_dscp", "acks",
        ...some.filter((id) => flows.some((flow) => flow[id] > 0)), "stall_max", "stall_after", "tries", "rtt_min", "verdict"]));
  }
  if (snapshot.receivers.length > 0) {
    section("Receivers", plain("receivers", "Marks, and the CNPs that answer them", snapshot.receivers,
      ["receiver", "marked", "expected", "cnps", "answered", "silent", "delay_p50", "delay_p99", "paced_by", "gap_qp", "gap_addresses", "gap_port", "with_naks"]));
  }
  if (snapshot.pauses.length > 0) {
    section("Pauses", plain("pauses", "By sender and class; without a class, all traffic", snapshot.pauses,
      ["interface", "mac", "class", "frames", "paused", "share", "episodes", "resumed", "timed_out", "longest", "storm"]));
  }
  if (snapshot.hops.length > 0) {
    section("Paths", plain("hops", "Hops from IOAM traces; queues in the unit of the namespace", snapshot.hops,
      ["path", "traces", "hop", "node", "namespace", "ingress", "egress", "queue_mean", "queue_max", "delay_max", "between"]));
  }

  // Findings.

  const SEVERITIES = ["error", "warning", "note"];
  const TONES = { error: "bad", warning: "warn", note: "dim" };
  const events = snapshot.events.map((event, place) => ({ event, at: data.events_since[place] }));
  const found = events.filter(({ event }) => event.frame !== null);
  const rules = new Map();
  for (const { event } of found) {
    const rule = rules.get(event.what) ?? { ...event, times: 0 };
    rule.times += event.times;
    rules.set(event.what, rule);
  }
  // The log may have forgotten, the counts have not.
  for (const [what, times] of Object.entries(snapshot.rules)) {
    const rule = rules.get(what) ?? { what, severity: null, frame: null, text: null, section: null };
    rules.set(what, { ...rule, times });
  }
  const tone = (severity) => (severity === null ? null : el("span", { class: TONES[severity] }, severity));
  const frame = (at) => (at === null ? null : filters.frames ? filter(`frame.number==${at}`) : String(at));
  const where = filters.frames ? "First frame, as a filter" : "First frame, in the order of capture";
  const words = (event) => el("div", {}, event.text, event.section ? el("div", { class: "small dim" }, event.section) : null);
  if (rules.size > 0) {
    section("Findings and capture events",
      table({ caption: "Broken rules and other remarkable packets", rows: [...rules.values()], columns: [
        { title: "Rule", value: ({ what }) => what, cell: ({ what }) => what },
        { title: "Severity", value: ({ severity }) => SEVERITIES.indexOf(severity), cell: ({ severity }) => tone(severity) },
        { title: "Times", number: true, value: ({ times }) => times, cell: ({ times }) => show.count(times) },
        { title: "Finding", wide: true, cell: words },
        { title: where, value: ({ frame: at }) => at, cell: ({ frame: at }) => frame(at) },
        { title: "Filter for all, with the plugin", cell: ({ what }) => (filters.rules[what] ? filter(filters.rules[what]) : null) },
      ] }),
      el("h3", {}, "Individual findings"),
      table({ caption: "Consecutive equal findings are one line", rows: found, columns: [
        { title: "After", value: ({ at }) => at, cell: ({ at }) => since(at) },
        { title: "Severity", value: ({ event }) => SEVERITIES.indexOf(event.severity), cell: ({ event }) => tone(event.severity) },
        { title: "Rule", value: ({ event }) => event.what, cell: ({ event }) => event.what },
        { title: "Times", number: true, value: ({ event }) => event.times, cell: ({ event }) => show.count(event.times) },
        { title: where, value: ({ event }) => event.frame, cell: ({ event }) => frame(event.frame) },
        { title: "From → to", value: ({ event }) => event.from, cell: ({ event }) => (event.from === null ? null : `${host(event.from)} → ${event.to === null ? "unknown" : host(event.to)}`) },
        { title: "Finding", wide: true, cell: ({ event }) => event.text },
      ] }));
  }
  if (snapshot.interfaces.length > 0) {
    section("Capture interfaces", plain("interfaces", "Interfaces", snapshot.interfaces,
      ["name", "state", "received", "notifications", "data", "other", "paused", "cut", "undecodable", "dropped_kernel", "dropped_interface", "about"]));
  }
  if (snapshot.counters.length > 0) {
    section("NIC counters of this host", plain("counters", "Counters of RDMA devices", snapshot.counters,
      ["device", "port", "interface", "counter", "quantity", "qps", "value", "growth", "seen", "resets"]));
  }
  add(el("footer", { class: "small dim" }, el("p", {}, `Generated by ${data.made_by}. This page loads nothing; its data is JSON in the element “data” of its source. Charts by uPlot.`)));
  done();
})();
