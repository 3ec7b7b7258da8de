// Groups of applies that fold into one box: those of a scope of names, of a layer, or of the pass that made
// them.
(function (view) {
  "use strict";

  const { el } = view;

  // scopeOf returns the scope of an apply: of an ONNX node by the path in its names, of a network by the
  // component before its first dot.
  function scopeOf(run, n) {
    const node = run.nodes[n], component = (node.params || []).find(([k]) => k === "component")?.[1];
    if (component) return component.split(/[.\-+]/)[0];
    const name = run.values[node.out?.[0]]?.name || "", parts = name.split(/[/.]/).filter(Boolean);
    return parts.length > 1 ? parts.slice(0, Math.min(2, parts.length - 1)).join("/") : "";
  }

  function passOf(run, n) {
    const born = run.bornAt.get(n);
    return born === undefined ? "" : run.passes[run.steps[born].pass]?.name ?? "";
  }

  // A Folding says which applies of a run are drawn as one. Each group is drawn in the place of its first
  // apply.
  class Folding {
    constructor(run, mode) {
      this.source = run;
      const names = new Map(); // name: members
      run.nodes.forEach((_, n) => {
        const name = mode === "pass" ? passOf(run, n) : scopeOf(run, n);
        if (name) names.set(name, [...(names.get(name) ?? []), n]);
      });
      this.groups = [...names].filter(([, list]) => list.length > 1).map(([name, members]) => ({ name, members, first: members[0], folded: true }));
      this.of = new Map();
      for (const g of this.groups) for (const n of g.members) this.of.set(n, g);
      this.refold();
    }

    // at returns the group that is drawn as an apply, if any.
    at(n) {
      const g = this.of.get(n);
      return g?.folded && g.first === n ? g : null;
    }

    // drawnAs returns the apply that another one is drawn as.
    drawnAs(n) {
      const g = this.of.get(n);
      return g?.folded ? g.first : n;
    }

    // refold makes the run that is drawn: with the groups that are folded in place of their members.
    refold() {
      const run = this.source, as = (n) => (n < 0 ? n : this.drawnAs(n));
      const drawn = (this.run = Object.create(run));
      drawn.owner = Int32Array.from(run.owner, as);
      drawn.nodes = run.nodes.slice();
      for (const g of this.groups) {
        if (!g.folded) continue;
        const inputs = g.members.flatMap((n) => run.nodes[n].in || []), outs = g.members.flatMap((n) => run.nodes[n].out || []);
        drawn.nodes[g.first] = { op: g.name, kind: "group", in: this.outside(g, inputs), out: outs };
      }
      drawn.start = { ...run.start, nodes: [...new Set((run.start.nodes || []).map(as))] };
    }

    // outside returns the values among inputs that no member of a group makes, each once.
    outside(g, inputs) {
      return [...new Set(inputs)].filter((v) => this.of.get(this.source.owner[v]) !== g);
    }

    // diff returns what is drawn of a diff.
    diff(d) {
      const change = new Uint8Array(d.change.length), inputs = d.inputs.slice(), inputsBefore = d.inputsBefore.slice(), ids = [];
      const there = new Map(); // group: members in the diff
      for (const n of d.ids) {
        const g = this.of.get(n);
        if (!g?.folded) {
          change[n] = d.change[n];
          ids.push(n);
          continue;
        }
        if (!there.has(g)) {
          there.set(g, []);
          ids.push(g.first);
        }
        there.get(g).push(n);
      }
      for (const [g, members] of there) {
        const kinds = new Set(members.map((n) => d.change[n]));
        change[g.first] = kinds.size === 1 ? d.change[members[0]] : view.KEPT;
        inputs[g.first] = inputsBefore[g.first] = this.outside(g, members.flatMap((n) => d.inputs[n]));
        this.run.nodes[g.first].op = `${g.name}{${members.length === 1 ? "1 apply" : members.length + " applies"}}`;
      }
      return { ...d, change, ids, inputs, inputsBefore };
    }
  }

  const groupMethods = {
    // foldBy folds all groups of a kind, or none.
    foldBy(mode) {
      this.folding = mode ? new Folding(this.run, mode) : null;
      if (this.folding && !this.folding.groups.length) this.folding = null;
      this.refolded();
    },

    // fold folds or unfolds one group.
    fold(g, folded) {
      g.folded = folded;
      this.folding.refold();
      this.refolded();
    },

    refolded() {
      if (this.folding) this.folding.diff(this.diff); // so that boxes are as wide as what is in them
      this.picture.open(this.folding?.run ?? this.run);
      if (this.second) this.openSecond();
      this.draw();
      this.picture.fit();
      this.picture.render();
    },

    // drawn returns what the pictures draw of a diff.
    drawn(diff) {
      return this.folding ? this.folding.diff(diff) : diff;
    },
  };

  // groupDetail tells what is in a group, or to which an apply belongs.
  function groupDetail(app, n) {
    const g = app.folding?.of.get(n);
    if (!g) return null;
    const button = el("button.small", { "data-fold": g.name, onclick: () => app.fold(g, !g.folded) }, g.folded ? "unfold" : "fold");
    const members = g.members.filter((m) => app.diff.change[m]);
    return el("section.group", null, el("h3", null, `Group ${g.name} `, button),
      g.folded ? el("ul.values", null, members.slice(0, 100).map((m) => el("li", null, app.run.nodeLabel(m), " ", el("span.tag." + view.changeNames[app.diff.change[m]], null, view.changeNames[app.diff.change[m]])))) : null);
  }

  Object.assign(view, { groupMethods, groupDetail });
})((globalThis.nnopt ??= {}));
