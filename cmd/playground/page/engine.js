// The engine inside of the page: a worker that runs it takes the place of a server.
(function (view) {
  "use strict";

  const text = (id) => document.getElementById(id)?.textContent ?? "";

  class Inside {
    constructor() {
      this.largest = 300 << 20; // bytes of a file: it is in memory, and so is what is made of it
      this.waiting = new Map(); // number of a question: [resolve, reject, piece]
      this.files = new Map(); // name: File, for a worker that takes the place of another
      this.next = 1;
      this.later = []; // questions that wait until nothing else does: lists of passes
      this.module = null;
    }

    state() {
      return this.started ? "…" : "The engine is starting …";
    }

    // start starts the engine, if it does not run.
    start() {
      if (this.worker) return this.worker;
      const source = URL.createObjectURL(new Blob([text("worker")], { type: "text/javascript" }));
      const worker = (this.worker = new Worker(source));
      URL.revokeObjectURL(source);
      worker.onmessage = ({ data }) => worker === this.worker && this.hear(data);
      worker.onerror = (e) => {
        e.preventDefault();
        this.end(e.message);
      };
      worker.postMessage({ engine: this.module ?? text("engine") });
      // What fails here is said by the question that needs the file.
      this.restored = Promise.all([...this.files].map(([name, file]) => this.send({ put: name }, file))).catch(() => {});
      return worker;
    }

    hear(data) {
      if (data.module) this.module = data.module;
      else if (data.started) {
        this.started = true;
        this.hurry();
        document.documentElement.dataset.engine = "started";
        performance.mark("nnopt:engine");
      } else if (data.ended) this.end(data.why);
      else if (data.ok === null) this.waiting.get(data.id)?.[2]?.(data.bytes);
      else {
        const [resolve, reject] = this.waiting.get(data.id) ?? [];
        this.waiting.delete(data.id);
        if (data.ok) resolve?.(data.bytes.buffer);
        else reject?.(view.faultOf(JSON.parse(new TextDecoder().decode(data.bytes))));
        setTimeout(() => this.hurry());
      }
    }

    // end says to all who wait that the engine ended; the next question starts another one.
    end(why) {
      const memory = /memory|Array buffer allocation/i.test(why ?? "");
      this.quit(new Error(/\bWebAssembly is not defined|Wasm code generation disallowed/.test(why ?? "") ? "This browser does not run WebAssembly, which the engine is made of. The graph below is there without it."
        : memory ? "This takes more memory than the page may use, 2 GB. The program nnopt has no such limit." : "The engine ended" + (why ? ": " + why : ".")));
    }

    quit(err) {
      this.worker?.terminate();
      this.worker = null;
      this.why = err;
      this.started = false;
      delete document.documentElement.dataset.engine;
      const all = [...this.waiting.values(), ...this.later.splice(0)];
      this.waiting.clear();
      for (const [, reject] of all) reject(err);
    }

    // stop ends what runs. It may be anywhere, so its worker goes, and another one starts.
    stop() {
      this.quit(new Error("Stopped."));
      this.start();
    }

    // alive fails for a worker that ended while something else was waited for: it would never answer.
    alive(worker) {
      if (worker !== this.worker) throw this.why;
      return this.next++;
    }

    async ask(question, body, piece) {
      const worker = this.start();
      await this.restored; // the question may be about a file
      const id = this.alive(worker);
      return new Promise((resolve, reject) => {
        const send = () => {
          this.waiting.set(id, [resolve, reject, piece]);
          worker.postMessage({ id, question, body: body === undefined ? "" : JSON.stringify(body) });
        };
        if (question !== "passes") return send();
        this.later.push([send, reject]);
        this.hurry();
      });
    }

    // hurry asks what waits, if nothing else is asked: the engine does one thing at a time.
    hurry() {
      if (this.started && !this.waiting.size) this.later.shift()?.[0]();
    }

    async put(name, file) {
      await this.send({ put: name }, file);
      this.files.set(name, file);
    }

    async send(message, file) {
      const worker = this.start(), bytes = await file.arrayBuffer(), id = this.alive(worker);
      return new Promise((resolve, reject) => {
        this.waiting.set(id, [resolve, reject]);
        worker.postMessage({ ...message, id, bytes }, [bytes]);
      });
    }
  }

  if (text("engine")) {
    view.transport = new Inside();
    // Unpacking takes longer than the first picture, and goes on beside it.
    view.transport.start();
  }
})((globalThis.nnopt ??= {}));
