// The recording: reading it, the state of the graph after any number of rewrites, and the ways of a value through the run.
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

  // A Run is a recording with its indexes. Positions are counts of rewrites: the graph at position p is that after the first p.
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

    // diff returns what the drawn graph is between two positions: everything that is there after, and what has gone since before.
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

    // follow returns the life of a value, oldest first: [{value, from, to}…] by position, with the step that turned each into the next.
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

  // stopsOf returns the places where an arrow key rests: the start, and every pass that has no passes of its own, in order. Rewrites
  // that belong to no such pass make a stop of the pass around them.
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

  Object.assign(view, { read, Run, KEPT, NEW, GONE, changeNames });
})((globalThis.nnopt ??= {}));
