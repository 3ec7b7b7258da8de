// What answers the questions of the page: the program that serves it. A page with an engine inside puts
// another one in its place.
(function (view) {
  "use strict";

  class Served {
    constructor() {
      this.largest = 1 << 30; // bytes of a file
      this.stopper = new AbortController();
    }

    // ask asks a question, and returns the bytes of the answer. piece is told the bytes of what comes before
    // it.
    async ask(question, body, piece) {
      const init = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
      const reply = await this.fetch("api/" + question, init);
      if (reply.headers.get("Content-Type") === "application/jsonl") return this.lines(reply, piece);
      const bytes = await reply.arrayBuffer();
      if (reply.headers.get("Content-Type") !== "application/json") {
        if (!reply.ok) throw new Error(new TextDecoder().decode(bytes).trim() || reply.statusText);
        return bytes;
      }
      return checked(bytes);
    }

    // lines hands over the lines of a reply as they come, and returns the last one, which is the answer.
    async lines(reply, piece) {
      let rest = new Uint8Array(0);
      const next = reply.body.getReader();
      for (let part; !(part = await this.heard(next.read())).done; ) {
        rest = new Uint8Array([...rest, ...part.value]);
        for (let end; (end = rest.indexOf(10)) >= 0; rest = rest.slice(end + 1)) piece(rest.slice(0, end));
      }
      return checked(rest);
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

    fetch(path, init) {
      return this.heard(fetch(path, { ...init, signal: this.stopper.signal }));
    }

    // heard waits for the program, and says why it is not heard.
    async heard(promise) {
      const { signal } = this.stopper;
      try {
        return await promise;
      } catch {
        throw new Error(signal.aborted ? "Stopped." : "The program that serves this page does not answer.");
      }
    }
  }

  // checked returns the bytes of an answer, unless they are those of an error.
  function checked(bytes) {
    const fault = bytes.byteLength < 1 << 16 && JSON.parse(new TextDecoder().decode(bytes));
    if (fault && fault.error) throw faultOf(fault);
    return bytes;
  }

  // faultOf returns an error about what was typed, with its place.
  function faultOf({ error, line, column }) {
    const err = new Error(error);
    Object.assign(err, { line, column });
    return err;
  }

  // request asks a question, and returns the value of the answer. piece is told the values that come before.
  async function request(question, body, piece) {
    const value = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
    return value(await view.transport.ask(question, body, (bytes) => piece(value(bytes))));
  }

  Object.assign(view, { transport: new Served(), request, faultOf });
})((globalThis.nnopt ??= {}));
