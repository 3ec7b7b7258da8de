// The recording: reading it, the state of the graph after any number of rewrites, and the ways of a value
// through the run.
(function (view) {
  "use strict";

  // read returns the recording in the page, or null.
  async function read() {
    const plain = document.getElementById("recording");
    if (plain) return JSON.parse(plain.textContent);
    const packed = document.getElementById("recording-gz");
    if (!packed) return null;
    const bytes = Uint8Array.from(atob(packed.textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  // checked returns a recording that somebody brought, if what the page reads of it is there and the numbers
  // in it are of values, applies and passes that it has.
  function checked(data) {
    const wrong = (what) => {
      throw new Error("This is no recording that this page can show: " + what + ".");
    };
    if (data?.format !== "nnopt-view" || data.version !== 1) wrong("its format is not nnopt-view, version 1");
    const object = (x, what) => (x && typeof x === "object" && !Array.isArray(x) ? x : wrong(what + " is missing"));
    const list = (x, what) => (x === undefined || x === null ? [] : Array.isArray(x) ? x : wrong(what + " is no list"));
    for (const key of ["title", "subject", "query", "report"]) if (typeof (data[key] ?? "") !== "string") wrong(key + " is no text");
    const values = list(data.values, "values"), nodes = list(data.nodes, "nodes"), steps = list(data.steps, "steps"), passes = list(data.passes, "passes");
    const number = (i, n, what) => (Number.isInteger(i) && i >= 0 && i < n) || wrong(what + " is out of range");
    const all = (x, of, what) => list(x, what).forEach((i) => number(i, of.length, what));
    for (const v of values) object(v, "a value");
    for (const n of nodes) {
      all(object(n, "a node").in, values, "the input of a node");
      all(n.out, values, "the output of a node");
      if (!Array.isArray(n.out)) wrong("a node has no outputs");
    }
    if (!passes.length) wrong("it has no passes");
    passes.forEach((p, i) => {
      if (typeof object(p, "a pass").name !== "string" || !Number.isInteger(p.parent ?? -1) || p.parent >= i) wrong("a pass has no name, or no place among the others");
      for (const s of list(p.steps, "the steps of a pass")) number(s, steps.length + 1, "a step of a pass");
      for (const r of list(p.rules, "the rules of a pass")) object(r, "a rule");
    });
    const start = object(data.start, "the graph at the start");
    all(start.nodes, nodes, "a node at the start");
    for (const side of ["inputs", "outputs"]) all(start[side], values, "a value at the start");
    for (const s of steps) {
      number(object(s, "a step").pass ?? 0, passes.length, "the pass of a step");
      for (const of of ["new", "gone"]) all(s[of], nodes, "a node of a step");
      for (const r of list(s.rewired, "what a step rewires")) number(r?.[0], nodes.length, "a node that is rewired"), number(r[2], values.length, "a value that is read");
      for (const r of list(s.replaced, "what a step replaces")) number(r?.[0], values.length, "a value that is replaced"), number(r[1], values.length, "a replacement");
      for (const r of list(s.outputs, "outputs of a step")) number(r?.[1], values.length, "an output");
      all(s.outputs_all, values, "an output");
    }
    for (const m of list(data.misses, "misses")) number(m?.[0], nodes.length, "the node of a miss");
    return data;
  }

  // A Run is a recording with its indexes. Positions are counts of rewrites: the graph at position p is that
  // after the first p.
  class Run {
    constructor(data) {
      this.data = data;
      this.nodes = data.nodes || [];
      this.values = data.values || [];
      this.steps = data.steps || [];
      this.passes = data.passes || [];
      this.start = data.start || { nodes: [], inputs: [], outputs: [] };
      this.hasGraph = this.nodes.length > 0 || (this.start.outputs || []).length > 0;
      this.owner = ownersOf(this.nodes, this.values.length);
      this.cursor = new Cursor(this);
      this.stops = stopsOf(this.passes, this.steps);
      this.indexSteps();
      this.indexMisses();
      this.indexCommands();
    }

    // indexSteps notes where nodes come and go and where values replace each other.
    indexSteps() {
      this.bornAt = new Map(); // node: the first step that made it
      this.goneAt = new Map(); // node: the last step that took it
      this.becomes = new Map(); // value: [[step, new value]…]
      this.stems = new Map(); // value: [[step, old value]…]
      const push = (m, k, v) => (m.has(k) ? m.get(k).push(v) : m.set(k, [v]));
      this.steps.forEach((s, k) => {
        for (const n of s.new || []) if (!this.bornAt.has(n)) this.bornAt.set(n, k);
        for (const n of s.gone || []) this.goneAt.set(n, k);
        for (const [old, now] of s.replaced || []) {
          push(this.becomes, old, [k, now]);
          push(this.stems, now, [k, old]);
        }
      });
    }

    indexMisses() {
      this.misses = new Map(); // node: [{rule, why, pass}…]
      for (const [node, rule, why, pass] of this.data.misses || []) {
        if (!this.misses.has(node)) this.misses.set(node, []);
        this.misses.get(node).push({ rule, why, pass });
      }
    }

    indexCommands() {
      this.commandsOf = { before: new Map(), after: new Map() }; // node: [command…]
      for (const side of ["before", "after"]) {
        (this.data.commands?.[side] || []).forEach((c, i) => {
          for (const n of c.nodes || []) {
            const m = this.commandsOf[side];
            if (!m.has(n)) m.set(n, []);
            m.get(n).push(i);
          }
        });
      }
    }

    // stopOf returns the stop to which a step belongs.
    stopOf(step) {
      const i = this.stops.findIndex((s) => s.from <= step && step < s.to);
      return i < 0 ? this.stops.length - 1 : i;
    }

    // diff returns what the drawn graph is between two positions: everything that is there after, and what
    // has gone since before.
    diff(from, to) {
      const c = this.cursor;
      c.seek(from);
      const before = c.alive.slice(), inputsBefore = c.inputs.slice(), outputsBefore = c.outputs.slice();
      c.seek(to);
      const change = new Uint8Array(this.nodes.length);
      const inputs = c.inputs.slice(), ids = [];
      for (let n = 0; n < change.length; n++) {
        if (c.alive[n]) change[n] = before[n] ? KEPT : NEW;
        else if (before[n]) {
          change[n] = GONE;
          inputs[n] = inputsBefore[n];
        } else continue;
        ids.push(n);
      }
      return { from, to, change, ids, inputs, outputs: c.outputs.slice(), inputsBefore, outputsBefore };
    }

    // follow returns the life of a value, oldest first: [{value, from, to}…] by position, with the step that
    // turned each into the next.
    follow(value, at) {
      const line = [{ value, step: -1 }];
      let v = value, limit = at;
      for (let seen = new Set([v]); ; seen.add(v)) {
        const born = this.owner[v] >= 0 ? this.bornAt.get(this.owner[v]) : undefined;
        if (born === undefined) break;
        const stem = (this.stems.get(v) || []).find(([k, old]) => k >= born && k < limit && !seen.has(old));
        if (!stem || stem[0] !== born) {
          line[0].made = born;
          break;
        }
        line[0].step = born;
        v = stem[1];
        limit = born + 1;
        line.unshift({ value: v, step: -1 });
      }
      v = value;
      let after = at;
      for (let seen = new Set(line.map((e) => e.value)); ; ) {
        const next = (this.becomes.get(v) || []).find(([k]) => k >= after);
        if (!next) break;
        line.push({ value: next[1], step: next[0] });
        v = next[1];
        after = next[0] + 1;
        if (seen.has(v) && line.length > 1000) break;
        seen.add(v);
      }
      return line;
    }

    // valueAt returns which value of a followed line holds at a position.
    valueAt(line, position) {
      let v = line[0].value;
      for (const e of line) if (e.step >= 0 && e.step < position) v = e.value;
      return v;
    }

    nodeLabel(n) {
      return this.nodes[n]?.op || "?";
    }

    valueLabel(v) {
      const x = this.values[v];
      if (!x) return "?";
      if (x.const !== undefined && x.const !== "") return x.const;
      if (x.name) return x.name;
      const n = this.owner[v];
      if (n < 0) return "value " + v;
      const outs = this.nodes[n].out || [];
      return this.nodeLabel(n) + (outs.length > 1 ? " · output " + outs.indexOf(v) : "");
    }
  }

  // A Cursor holds the graph at one position and moves by applying steps forwards and taking them back.
  class Cursor {
    constructor(run) {
      this.run = run;
      this.position = 0;
      this.alive = new Uint8Array(run.nodes.length);
      for (const n of run.start.nodes || []) this.alive[n] = 1;
      this.inputs = run.nodes.map((n) => n.in || []);
      this.outputs = (run.start.outputs || []).slice();
      this.undo = [];
    }

    seek(position) {
      while (this.position < position && this.position < this.run.steps.length) this.forward();
      while (this.position > position && this.position > 0) this.back();
    }

    forward() {
      const s = this.run.steps[this.position], inputs = [];
      for (const n of s.new || []) this.alive[n] = 1;
      for (const [n, i, v] of s.rewired || []) {
        inputs.push(n, this.inputs[n]);
        this.inputs[n] = replaced(this.inputs[n], i, v);
      }
      const all = s.outputs_all ? this.outputs : null, outputs = [];
      if (all) this.outputs = s.outputs_all.slice();
      for (const [i, v] of s.outputs || []) {
        outputs.push(i, this.outputs[i]);
        this.outputs[i] = v;
      }
      for (const n of s.gone || []) this.alive[n] = 0;
      this.undo[this.position++] = { inputs, outputs, all };
    }

    back() {
      const s = this.run.steps[--this.position], u = this.undo[this.position];
      for (const n of s.gone || []) this.alive[n] = 1;
      for (const n of s.new || []) this.alive[n] = 0;
      for (let i = u.inputs.length - 2; i >= 0; i -= 2) this.inputs[u.inputs[i]] = u.inputs[i + 1];
      for (let i = u.outputs.length - 2; i >= 0; i -= 2) this.outputs[u.outputs[i]] = u.outputs[i + 1];
      if (u.all) this.outputs = u.all;
    }
  }

  const KEPT = 1, NEW = 2, GONE = 3;
  const changeNames = ["", "kept", "new", "gone"];

  function replaced(list, i, v) {
    const copy = list.slice();
    copy[i] = v;
    return copy;
  }

  function ownersOf(nodes, count) {
    const owner = new Int32Array(count).fill(-1);
    nodes.forEach((n, i) => {
      for (const v of n.out || []) owner[v] = i;
    });
    return owner;
  }

  // stopsOf returns the places where an arrow key rests: the start, and every pass that has no passes of its
  // own, in order. Rewrites that belong to no such pass make a stop of the pass around them.
  function stopsOf(passes, steps) {
    const parents = new Set(passes.map((p) => p.parent ?? -1));
    const stops = [{ pass: -1, from: 0, to: 0 }];
    let done = 0;
    const close = (upto) => {
      while (done < upto) {
        const pass = steps[done].pass ?? -1, from = done;
        while (done < upto && (steps[done].pass ?? -1) === pass) done++;
        stops.push({ pass, from, to: done });
      }
    };
    passes.forEach((p, i) => {
      const [from, to] = p.steps || [done, done];
      close(Math.min(from, steps.length));
      if (parents.has(i) || to < done) return;
      stops.push({ pass: i, from: Math.max(from, done), to });
      done = Math.max(done, to);
    });
    close(steps.length);
    return stops;
  }

  Object.assign(view, { read, checked, Run, KEPT, NEW, GONE, changeNames });
})((globalThis.nnopt ??= {}));
