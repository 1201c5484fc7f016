"use strict";
// Reads a capture in a thread of its own: gives the octets of the file to the WebAssembly module, and its results to the page.
(() => {
  /** Octets of the file read at once: the file is never in memory as a whole. */
  const SLICE = 1 << 20;
  /** Octets of output gathered before they become a part of a Blob, which need not stay in memory. */
  const PART = 8 << 20;
  /** Limit on the module's memory, as in `cargo xtask page`. */
  const MEMORY = 1 << 30;
  /** Kinds of output, as in `border.rs`. */
  const OUTPUT = 0;

  const reader = new FileReaderSync();
  let file = null, exports = null, failure = null;
  let slice = { at: 0, octets: new Uint8Array(0) };
  let parts = [], part = [], gathered = 0;

  const memory = (at, length) => new Uint8Array(exports.memory.buffer, at >>> 0, length >>> 0);
  const page = {
    read(offset, to, length) {
      if (offset >= file.size) return 0;
      if (offset < slice.at || offset >= slice.at + slice.octets.length) {
        slice = { at: offset, octets: new Uint8Array(0) };
        try {
          slice.octets = new Uint8Array(reader.readAsArrayBuffer(file.slice(offset, offset + SLICE)));
        } catch {
          return -1;
        }
        postMessage({ progress: offset });
      }
      const from = offset - slice.at;
      const octets = slice.octets.subarray(from, from + length);
      memory(to, octets.length).set(octets);
      return octets.length;
    },
    name(to, length) {
      return new TextEncoder().encodeInto(file.name, memory(to, length)).written;
    },
    write(kind, from, length) {
      const octets = memory(from, length).slice();
      if (kind !== OUTPUT) {
        failure ??= new TextDecoder().decode(octets);
        return;
      }
      part.push(octets);
      gathered += length;
      if (gathered >= PART) join();
    },
    now: () => Date.now(),
  };
  function join() {
    parts.push(new Blob(part));
    part = [];
    gathered = 0;
  }

  /** Calls an export; returns its result and its output. */
  function call(name, ...values) {
    failure = null;
    parts = [];
    part = [];
    gathered = 0;
    let result = null;
    try {
      result = exports[name](...values);
    } catch (error) {
      const most = exports.memory.buffer.byteLength >= MEMORY - (64 << 20);
      failure ??= most ? `more than ${MEMORY >> 20} MiB of memory are needed, which this page does not use: fcn-top has no such limit` : `internal error, please report it: ${error.message}`;
    }
    if (failure !== null) throw new Error(failure);
    join();
    return { result, output: new Blob(parts) };
  }
  // What was read is freed only when no script runs.
  const channel = new MessageChannel();
  const pause = () => new Promise((done) => {
    channel.port1.onmessage = done;
    channel.port2.postMessage(null);
  });

  const tasks = {
    async open({ module, file: chosen }) {
      file = chosen;
      ({ exports } = (await WebAssembly.instantiate(module, { page })));
      const began = performance.now();
      call("open", crypto.getRandomValues(new Uint32Array(1))[0]);
      while (call("advance").result === 1) await pause();
      return { packets: exports.count(), took: performance.now() - began, memory: exports.memory.buffer.byteLength };
    },
    page: async () => ({ text: await call("page").output.text() }),
    json: () => ({ output: call("json").output }),
    packets({ row }) {
      const { result, output } = call("packets", row);
      return { dropped: result, output };
    },
  };
  addEventListener("message", async ({ data }) => {
    try {
      postMessage({ done: await tasks[data.task](data) });
    } catch (error) {
      postMessage({ failed: error.message });
    }
  });
})();
