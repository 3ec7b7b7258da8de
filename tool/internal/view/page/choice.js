// What leads from a chosen apply to others, to its commands, and to the rules that left it alone.
(function (view) {
  "use strict";

  // choiceMethods are the methods of the page for what is chosen.
  const choiceMethods = {
    // walk goes along a line from the chosen apply: up to its first input, down to its first reader.
    walk(by) {
      const { run, diff } = this;
      if (this.node < 0 || !diff.change[this.node]) {
        const all = this.picture.visible(this.picture.camera.window()).flatMap((b) => b.nodes);
        if (all.length) this.select(all[0], true);
        return;
      }
      const outs = new Set(run.nodes[this.node].out || []);
      const next = by < 0
        ? diff.inputs[this.node].map((v) => run.owner[v]).filter((o) => o >= 0 && diff.change[o])
        : diff.ids.filter((n) => diff.inputs[n].some((v) => outs.has(v)));
      if (next.length) this.select(next[0], true);
    },

    aside(by) {
      const { graph } = this.picture;
      if (this.node < 0 || graph.blockOf[this.node] < 0) return;
      const b = graph.blocks[graph.blockOf[this.node]];
      if (!b.placed) return;
      const at = (n) => b.placed.at.get(n).x;
      const row = b.nodes.filter((n) => graph.layer[n] === graph.layer[this.node]).sort((p, q) => at(p) - at(q));
      const next = row[row.indexOf(this.node) + by];
      if (next !== undefined) this.select(next, true);
    },

    // commandsOf returns the commands that an apply stands for; before, also those of what its values were
    // made from.
    commandsOf(n, side) {
      const { run } = this, index = run.commandsOf[side], own = index.get(n);
      if (own) return own;
      const found = new Set();
      for (const v of run.nodes[n].out || []) {
        const line = run.follow(v, this.diff.to), end = side === "before" ? line[0] : line[line.length - 1];
        for (const i of index.get(run.owner[end.value]) || []) found.add(i);
      }
      return [...found].sort((a, b) => a - b);
    },

    // selectCommand chooses the apply of a command, at a step where it is there.
    selectCommand(side, index) {
      const c = this.run.data.commands[side][index], final = this.run.stops.length - 1;
      const n = (c.nodes || [])[0];
      if (n === undefined) {
        const v = (c.values || [])[0];
        if (v !== undefined) this.selectValue(v);
        else this.select(-1);
      } else {
        if (!this.diff.change[n]) {
          Object.assign(this, { stop: side === "before" ? 0 : final, fine: -1, group: -1 });
          this.draw();
        }
        this.select(n, true);
      }
      this.command = { side, index };
      view.markCommands(this);
    },

    showCommand(side, index) {
      this.openTab("commands");
      this.selectCommand(side, index);
    },

    async askWhyNot(n, rule) {
      const key = this.diff.to + "/" + n, { run } = this;
      try {
        const { misses } = await view.request("whynot", { ...this.question, step: this.diff.to, node: n, rule });
        const list = (misses || []).map(([name, why]) => ({ rule: name, why }));
        this.answers.set(key, { misses: list });
        if (!list.length) this.answers.set(key, { error: "No rule that tracks this op has anything to say." });
      } catch (err) {
        this.answers.set(key, { error: err.message });
      }
      if (this.run === run) view.drawDetail(this);
    },

    why() {
      if (this.node < 0) return;
      this.showView("detail");
      document.querySelector(".whynot")?.scrollIntoView({ block: "start" });
      (document.querySelector(".whynot input") || view.$("detail")).focus();
    },
  };

  // speak says what is chosen, for those who hear the page: what it reads, who reads it, and where it is.
  function speak(app) {
    const { run, diff, node } = app;
    if (node < 0 || !diff?.change[node]) return view.$("spoken").replaceChildren();
    const outs = new Set(run.nodes[node].out || []), readers = diff.ids.filter((n) => diff.inputs[n].some((v) => outs.has(v)));
    const names = (list) => list.slice(0, 5).join(", ") + (list.length > 5 ? ` and ${list.length - 5} more` : "");
    const type = run.values[run.nodes[node].out?.[0]]?.type;
    view.$("spoken").textContent = [run.nodeLabel(node), type, view.changeNames[diff.change[node]],
      diff.inputs[node].length ? "reads " + names(diff.inputs[node].map((v) => run.valueLabel(v))) : "reads nothing",
      readers.length ? "read by " + names(readers.map((n) => run.nodeLabel(n))) : diff.outputs.some((v) => outs.has(v)) ? "an output" : "read by nothing"].filter(Boolean).join("; ");
  }

  Object.assign(view, { choiceMethods, speak });
})((globalThis.nnopt ??= {}));
