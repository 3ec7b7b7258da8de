// The worker of the page: it runs the engine, and passes on what the page asks. Questions that come
// before the engine has started wait.
(() => {
  let ask = null;
  const early = [];

  globalThis.started = (f) => {
    ask = f;
    postMessage({ started: true });
    for (const q of early.splice(0)) question(q);
  };

  const question = (q) => {
    if (!ask) return early.push(q);
    ask(q.question, q.body ?? "", (ok, bytes) => postMessage({ id: q.id, ok, bytes }, [bytes.buffer]));
  };

  async function start(engine) {
    let module = engine;
    if (typeof engine === "string") {
      module = await WebAssembly.compile(unlzma(unpacked(engine)));
      postMessage({ module }); // with it, another worker starts at once
    }
    const go = new Go();
    go.env = { HOME: "/files", TMPDIR: "/tmp" };
    go.exit = () => {};
    const instance = await WebAssembly.instantiate(module, go.importObject);
    await go.run(instance);
    postMessage({ ended: true, why: globalThis.printed?.match(/(fatal error|panic): .*/)?.[0] ?? globalThis.printed }); // it never ends by itself
  }

  onmessage = ({ data }) => {
    if (data.engine) start(data.engine).catch((err) => postMessage({ ended: true, why: String(err?.message ?? err) }));
    else if (data.put) {
      try {
        put(data.put, new Uint8Array(data.bytes));
        postMessage({ id: data.id, ok: true, bytes: new Uint8Array(0) });
      } catch (err) {
        postMessage({ id: data.id, ok: false, bytes: new TextEncoder().encode(JSON.stringify({ error: err.message })) });
      }
    } else question(data);
  };
})();
