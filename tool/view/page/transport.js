// What answers the questions of the page: the program that serves it. A page with an engine inside puts
// another one in its place.
(function (view) {
  "use strict";

  class Served {
    constructor() {
      this.largest = 1 << 30; // bytes of a file
      this.stopper = new AbortController();
    }

    // ask asks a question, and returns the bytes of the answer.
    async ask(question, body) {
      const init = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
      const reply = await this.fetch("api/" + question, init), bytes = await reply.arrayBuffer();
      if (reply.headers.get("Content-Type") !== "application/json") {
        if (!reply.ok) throw new Error(new TextDecoder().decode(bytes).trim() || reply.statusText);
        return bytes;
      }
      const fault = bytes.byteLength < 1 << 16 && JSON.parse(new TextDecoder().decode(bytes));
      if (fault && fault.error) throw faultOf(fault);
      return bytes;
    }

    // put hands over a file, by its name.
    async put(name, file) {
      const reply = await this.fetch("api/file/" + encodeURIComponent(name), { method: "PUT", headers: { "Content-Type": "application/octet-stream" }, body: file });
      if (!reply.ok) throw faultOf(JSON.parse(await reply.text()));
    }

    // stop ends all questions.
    stop() {
      this.stopper.abort();
      this.stopper = new AbortController();
    }

    async fetch(path, init) {
      const { signal } = this.stopper;
      try {
        return await fetch(path, { ...init, signal });
      } catch {
        throw new Error(signal.aborted ? "Stopped." : "The program that serves this page does not answer.");
      }
    }
  }

  // faultOf returns an error about what was typed, with its place.
  function faultOf({ error, line, column }) {
    const err = new Error(error);
    Object.assign(err, { line, column });
    return err;
  }

  // request asks a question, and returns the value of the answer.
  async function request(question, body) {
    return JSON.parse(new TextDecoder().decode(await view.transport.ask(question, body)));
  }

  Object.assign(view, { transport: new Served(), request, faultOf });
})((globalThis.nnopt ??= {}));
