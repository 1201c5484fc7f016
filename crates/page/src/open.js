"use strict";
// Takes a capture from the user, has `worker.js` read it, and shows the result: the page of `fcn-top --html`, in a frame that can
// neither reach this page nor the network.
const fcn = (() => {
  const root = document.documentElement;
  const find = (id) => document.getElementById(id);
  const [file, drop, choice, working, bar, state, failure, result, what, story] =
    ["file", "drop", "choice", "working", "bar", "state", "failure", "result", "what", "story"].map(find);
  const count = (value) => value.toLocaleString("en");
  const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(milliseconds < 950 ? 3 : 1)} s`;
  const megabytes = (octets) => `${count(Math.round(octets / 1e5) / 10)} MB`;

  let module = null, worker = null, running = null, name = "";

  /** The module, compiled once. */
  async function compiled() {
    if (module) return module;
    const packed = Uint8Array.from(atob(find("module").textContent.trim()), (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    module = await WebAssembly.compile(await new Response(unpacked).arrayBuffer());
    return module;
  }
  function start() {
    stop();
    const address = URL.createObjectURL(new Blob([find("worker").textContent], { type: "text/javascript" }));
    worker = new Worker(address);
    URL.revokeObjectURL(address);
  }
  function stop() {
    worker?.terminate();
    worker = null;
    running?.reject(new Error("it was cancelled"));
    running = null;
  }
  /** Has the worker do a task; one at a time. */
  function ask(message, progress = () => {}) {
    if (running) return Promise.reject(new Error("wait until the last one is done"));
    return new Promise((resolve, reject) => {
      running = { reject };
      const end = (how, value) => {
        running = null;
        how(value);
      };
      worker.onmessage = ({ data }) => {
        if ("progress" in data) progress(data.progress);
        else if ("failed" in data) end(reject, new Error(data.failed));
        else end(resolve, data.done);
      };
      worker.onerror = (event) => end(reject, new Error(`the page’s own script failed: ${event.message}`));
      worker.postMessage(message);
    });
  }

  function show(shown) {
    for (const part of [choice, working, result]) part.hidden = !shown.includes(part);
    story.hidden = !shown.includes(result);
  }
  function fail(text) {
    failure.textContent = text;
    failure.hidden = false;
  }
  /** Announces progress to screen readers at each tenth. */
  function progressOf(size) {
    let announced = -1;
    return (octets) => {
      bar.value = size > 0 ? octets / size : 0;
      const tenth = Math.floor(bar.value * 10);
      if (tenth > announced) state.textContent = `Reading ${name}: ${tenth * 10} % of ${megabytes(size)}`;
      announced = Math.max(announced, tenth);
    };
  }

  async function open(chosen) {
    start();
    name = chosen.name;
    failure.hidden = true;
    root.dataset.state = "working";
    show([working]);
    const progress = progressOf(chosen.size);
    progress(0);
    const mine = worker;
    try {
      const done = await ask({ task: "open", module: await compiled(), file: chosen }, progress);
      state.textContent = `Preparing the report on ${name}`;
      bar.removeAttribute("value");
      const { text } = await ask({ task: "page" });
      // A new document for each capture; its own policy and this page's both apply.
      story.srcdoc = text;
      story.title = `Report on ${name}`;
      document.title = `${name}: congestion notifications`;
      what.textContent = `${name}: ${count(done.packets)} packets, read in ${seconds(done.took)}`;
      what.title = `Memory for the analysis: ${megabytes(done.memory)}`;
      show([result]);
      root.dataset.state = "ready";
      what.focus();
      return done;
    } catch (error) {
      // Cancelled by the next file, which has the page now.
      if (worker !== mine && worker !== null) return null;
      fail(error.message.includes(name) ? error.message : `${name}: ${error.message}`);
      show([choice]);
      root.dataset.state = "failed";
      file.focus();
      return null;
    } finally {
      file.value = "";
    }
  }

  function offer(blob, called) {
    const address = URL.createObjectURL(blob);
    const link = document.createElement("a");
    link.href = address;
    link.download = called;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  }
  const stem = () => name.replace(/\.(gz|zst)$/i, "").replace(/\.(pcapng|pcap|cap)$/i, "");
  async function save(make) {
    failure.hidden = true;
    try {
      await make();
    } catch (error) {
      fail(`Nothing was saved: ${error.message}`);
    }
  }
  const json = async () => (await ask({ task: "json" })).output;
  const packets = async (row) => {
    const { output, dropped } = await ask({ task: "packets", row });
    if (dropped > 0) fail(`Only the latest packets are kept in memory: ${count(dropped)} older ones of the capture are not in the file. Wireshark’s filter of the row finds all.`);
    return output;
  };

  file.addEventListener("change", () => { if (file.files.length > 0) open(file.files[0]); });
  find("cancel").addEventListener("click", stop);
  find("another").addEventListener("click", () => {
    show([choice, result]);
    file.focus();
  });
  find("json").addEventListener("click", () => save(async () => offer(await json(), `${stem()}.json`)));
  find("html").addEventListener("click", () => save(async () => offer(new Blob([story.srcdoc], { type: "text/html" }), `${stem()}.html`)));
  // The report asks for the packets of a row.
  addEventListener("message", ({ source, data }) => {
    const row = data?.row;
    if (source === story.contentWindow && Number.isSafeInteger(row) && row >= 0) {
      save(async () => offer(await packets(row), `${stem()}-row-${row + 1}.pcapng`));
    }
  });
  // Anywhere on the page.
  addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  for (const event of ["dragleave", "drop"]) addEventListener(event, () => drop.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    const [dropped] = event.dataTransfer.files;
    if (dropped) open(dropped);
    else fail("That is not a file: drop a capture file.");
  });
  addEventListener("error", (event) => fail(`This page failed: ${event.message}`));
  if (!("DecompressionStream" in globalThis && "WebAssembly" in globalThis)) fail("This browser is too old for this page: it needs WebAssembly and DecompressionStream (all browsers since 2023).");
  show([choice]);
  root.dataset.state = "waiting";
  return { open, json, packets };
})();
