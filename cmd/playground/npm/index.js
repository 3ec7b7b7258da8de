// Optimizes and runs ONNX models, in workers. See index.d.ts.
const node = globalThis.process?.versions?.node !== undefined;

let compiled;
// engine returns the program, which is read and compiled once.
function engine() {
  const url = new URL("nnopt.wasm", import.meta.url);
  compiled ??= node ? import("node:fs/promises").then((fs) => fs.readFile(url)).then((b) => WebAssembly.compile(b)) : WebAssembly.compileStreaming(fetch(url));
  return compiled;
}

// begin starts a worker, and returns functions that ask it and end it.
async function begin() {
  const url = new URL("worker.js", import.meta.url);
  const worker = node ? new (await import("node:worker_threads")).Worker(url) : new Worker(url, { type: "module" });
  const waiting = new Map(); // by number: who waits for an answer, "ready" for the worker itself
  let ended = null;
  const fail = (err) => { ended ??= err; for (const [, w] of waiting) w.reject(err); waiting.clear(); };
  const ready = new Promise((resolve, reject) => waiting.set("ready", { resolve, reject }));
  const receive = (m) => {
    const id = m.ready ? "ready" : m.id, w = waiting.get(id);
    waiting.delete(id);
    if (m.error) w?.reject(new Error(m.error));
    else w?.resolve(m.answer);
  };
  if (node) worker.on("message", receive).on("error", fail).on("exit", () => fail(new Error("the worker has ended")));
  else Object.assign(worker, { onmessage: ({ data }) => receive(data), onerror: (e) => fail(new Error(e.message)) });
  await ready;
  let last = 0;
  return {
    ask: (question, rest) => new Promise((resolve, reject) => {
      if (ended) return reject(ended);
      waiting.set(++last, { resolve, reject });
      worker.postMessage({ id: last, question, ...rest });
    }),
    end: async () => {
      fail(new Error("it is closed"));
      await worker.terminate();
    },
  };
}

export async function command(args, files = {}) {
  const { ask, end } = await begin();
  try {
    return await ask("command", { module: await engine(), args, given: files });
  } finally {
    await end();
  }
}

export async function optimize(model, { query, flags = [] } = {}) {
  const args = ["opt", "--json", "--output=out.onnx", ...(query ? [`--query=${query}`] : []), ...flags, "in.onnx"];
  const { status, stdout, stderr, files } = await command(args, { "in.onnx": model });
  if (status) throw new Error(stderr.trim());
  return { model: files["out.onnx"], report: JSON.parse(stdout) };
}

// What the elements of a type are in JavaScript. Those of float16 are bits.
const arrays = {
  bool: Uint8Array, float16: Uint16Array, float32: Float32Array, float64: Float64Array, int8: Int8Array, int16: Int16Array, int32: Int32Array,
  int64: BigInt64Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
};

export async function open(model, { query = "" } = {}) {
  const { ask, end } = await begin();
  let values;
  try {
    values = await ask("open", { module: await engine(), model, query });
  } catch (err) {
    await end();
    throw err;
  }
  return {
    ...values,
    async run(inputs) {
      const list = Object.entries(inputs).map(([name, { dims, data }]) => {
        const wanted = arrays[values.inputs.find((v) => v.name === name)?.type];
        if (wanted && !(data instanceof wanted)) throw new TypeError(`input ${name}: a ${data?.constructor.name} in place of a ${wanted.name}`);
        return { name, dims, bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
      });
      const answer = await ask("run", { inputs: list });
      return Object.fromEntries(answer.map(({ name, type, dims, bytes }) => [name, { type, dims, data: new arrays[type](bytes.buffer) }]));
    },
    close: end,
  };
}
