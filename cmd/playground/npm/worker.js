// The worker in which a program of WebAssembly runs: a command with files in memory, or models that stay open.
const node = globalThis.process?.versions?.node !== undefined;
const port = node ? (await import("node:worker_threads")).parentPort : globalThis;
const { files, put } = await import("./files.js"); // it takes the place of fs and process
await import("./wasm_exec.js");

// start runs the program. It ends if it has arguments.
async function start(module, args) {
  const go = new Go();
  go.argv = ["nnopt", ...args];
  go.env = { HOME: "/files", TMPDIR: "/tmp" };
  let status = 0;
  go.exit = (code) => { status = code; };
  await go.run(await WebAssembly.instantiate(module, go.importObject));
  return status;
}

const does = {
  async command({ module, args, given }) {
    for (const [name, bytes] of Object.entries(given)) put(name, bytes);
    const texts = ["", "", ""], decoder = [0, 1, 2].map(() => new TextDecoder());
    globalThis.fs.writeSync = (fd, bytes) => {
      texts[fd] += decoder[fd].decode(bytes, { stream: true });
      return bytes.length;
    };
    const status = await start(module, args);
    const made = {};
    for (const [name, file] of files) if (file && name.startsWith("/files/")) made[name.slice("/files/".length)] = file.data.slice(0, file.size);
    return { status, stdout: texts[1], stderr: texts[2], files: made };
  },

  async open({ module, model, query }) {
    const functions = new Promise((resolve) => { globalThis.opened = (open, run) => resolve({ open, run }); });
    start(module, []).catch(() => {});
    const { open, run } = await functions;
    does.run = ({ inputs }) => {
      const answer = run(0, inputs);
      if (answer.error) throw new Error(answer.error);
      return answer;
    };
    const answer = open(model, query);
    if (answer.error) throw new Error(answer.error);
    return JSON.parse(answer.values);
  },
};

const receive = async ({ id, question, ...rest }) => {
  try {
    port.postMessage({ id, answer: await does[question](rest) });
  } catch (err) {
    port.postMessage({ id, error: String(err?.message ?? err) });
  }
};
if (node) port.on("message", receive);
else port.onmessage = ({ data }) => receive(data);
port.postMessage({ ready: true });
