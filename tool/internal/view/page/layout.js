// The layout of a block: d3-dag orders and places the items of each layer. An apply that had a place before
// keeps to it.
(function (view) {
  "use strict";

  const nodeHeight = 36, chipHeight = 20, rowGap = 30, columnGap = 18, blockGap = 44;
  const pitch = nodeHeight + rowGap;
  const exact = 90; // places of a block that the slower placement with straighter lines can take

  // A Layout places the blocks of drawn graphs and remembers where everything was.
  class Layout {
    constructor(run) {
      this.run = run;
      this.lastX = new Map(); // by apply or chip
      this.cache = new Map();
      this.labels = run.nodes.map((n, i) => labelOf(run, n, i));
    }

    height(block) {
      return block.layers * pitch - rowGap;
    }

    // place gives a block its positions: applies and chips with x from the middle and y from the top, and the
    // lines inside. remember is false for one that is not on screen yet.
    place(block, diff, graph, remember = true) {
      if (block.placed) return block.placed;
      const items = this.items(block, diff, graph);
      const key = keyOf(items);
      let placed = this.cache.get(key);
      if (!placed) {
        placed = this.arrange(items);
        if (this.cache.size > 600) this.cache.delete(this.cache.keys().next().value);
        this.cache.set(key, placed);
      }
      if (remember) for (const [id, p] of placed.at) this.lastX.set(id, p.x);
      return (block.placed = placed);
    }

    // items returns the contents of a block, each with its layer, its width and what it reads there.
    items(block, diff, graph) {
      const { run } = this, { inputs, change, inputsBefore } = diff;
      const items = new Map();
      for (const n of block.nodes) items.set(n, { id: n, layer: graph.layer[n], width: this.labels[n].width, from: [] });
      for (const c of block.chips) {
        items.set(c.id, { id: c.id, layer: c.layer, width: chipWidth(run, c.value), from: [] });
        for (const n of c.readers) items.get(n).from.push(c.id);
      }
      for (const n of block.nodes) {
        const item = items.get(n), seen = new Set();
        const add = (v) => {
          const o = run.owner[v];
          if (o < 0 || graph.blockOf[o] !== block.index || seen.has(o)) return;
          const span = item.layer - graph.layer[o];
          if (span < 1 || span > block.reach) return;
          seen.add(o);
          item.from.push(o);
        };
        inputs[n].forEach(add);
        if (change[n] === view.KEPT && inputsBefore[n] !== inputs[n]) inputsBefore[n].forEach(add);
      }
      return [...items.values()];
    }

    arrange(items) {
      const g = d3.graph(), made = new Map();
      for (const it of items) made.set(it.id, g.node(it));
      let links = 0;
      for (const it of items) {
        for (const id of it.from) {
          g.link(made.get(id), made.get(it.id), null);
          links++;
        }
      }
      const known = items.filter((it) => this.lastX.has(it.id)).length;
      const layering = (graph) => {
        let top = 0;
        for (const node of graph.nodes()) {
          node.y = node.data.layer;
          top = Math.max(top, node.y);
        }
        return top;
      };
      const spread = items.reduce((s, it) => s + 1 + it.from.reduce((t, id) => t + it.layer - made.get(id).data.layer - 1, 0), 0);
      const lay = d3
        .sugiyama()
        .layering(layering)
        .decross(known * 2 > items.length ? this.keepOrder() : d3.decrossTwoLayer().order(d3.twolayerAgg()))
        .coord(spread <= exact ? d3.coordSimplex() : d3.coordGreedy())
        .nodeSize((node) => [node.data.width, nodeHeight])
        .gap([columnGap, rowGap]);
      const { width } = lay(g);
      return this.centred(items, made, g, width);
    }

    // centred moves a laid out block under its former place, or to the middle.
    centred(items, made, g, width) {
      let sum = 0, known = 0;
      for (const it of items) {
        if (!this.lastX.has(it.id)) continue;
        sum += made.get(it.id).x - this.lastX.get(it.id);
        known++;
      }
      const shift = known * 2 > items.length ? sum / known : width / 2;
      const at = new Map(), lines = new Map();
      let left = Infinity, right = -Infinity;
      for (const it of items) {
        const m = made.get(it.id), x = m.x - shift;
        at.set(it.id, { x, y: it.layer * pitch + nodeHeight / 2, width: it.width });
        left = Math.min(left, x - it.width / 2);
        right = Math.max(right, x + it.width / 2);
      }
      for (const link of g.links()) {
        const points = link.points.map(([x, y]) => [x - shift, y]);
        lines.set(link.source.data.id + ">" + link.target.data.id, points.slice(1, -1));
      }
      return { at, lines, left, right };
    }

    // keepOrder orders layers as they were, and puts what is new between its neighbours.
    keepOrder() {
      return (layers) => {
        const x = new Map();
        const known = (s) => {
          const d = s.data;
          if (d.role === "node") return this.lastX.get(d.node.data.id);
          const a = this.lastX.get(d.link.source.data.id), b = this.lastX.get(d.link.target.data.id);
          return a === undefined ? b : b === undefined ? a : (a + b) / 2;
        };
        for (const layer of layers) for (const s of layer) x.set(s, known(s));
        for (let pass = 0; pass < 2; pass++) {
          for (const layer of pass ? layers.toReversed() : layers) {
            for (const s of layer) {
              if (x.get(s) !== undefined) continue;
              const near = [...s.parents(), ...s.children()].map((o) => x.get(o)).filter((o) => o !== undefined);
              if (near.length) x.set(s, near.reduce((a, b) => a + b, 0) / near.length + 1);
            }
          }
        }
        for (const layer of layers) layer.sort((a, b) => (x.get(a) ?? 0) - (x.get(b) ?? 0));
      };
    }
  }

  // keyOf returns a text that tells blocks apart that need another layout.
  function keyOf(items) {
    const parts = [];
    for (const it of items) parts.push(it.id, "@", it.layer, ":", it.from.join(), ";");
    return parts.join("");
  }

  // labelOf returns the two lines of an apply, cut to fit, and its width.
  function labelOf(run, node, index) {
    const op = String(node.op ?? "?"), brace = op.indexOf("{");
    let title = op, sub = "";
    if (brace > 0 && op.endsWith("}")) {
      title = op.slice(0, brace);
      sub = op.slice(brace + 1, -1);
    }
    const inputs = node.in || [];
    if (!sub && inputs.some((v) => run.values[v]?.const !== undefined)) {
      sub = inputs.map((v) => (run.values[v]?.const !== undefined ? run.values[v].const : "·")).join(", ");
    }
    const type = run.values[(node.out || [])[0]]?.type || "";
    if (!sub) sub = type;
    title = cut(title, 24);
    sub = cut(sub, 28);
    const width = Math.min(200, Math.max(62, 7.3 * title.length + 34, 6.2 * sub.length + 26));
    return { title, sub, width, index };
  }

  function chipText(run, v) {
    return (run.owner[v] >= 0 ? "↑ " : "") + cut(run.valueLabel(v), 22);
  }

  function chipWidth(run, v) {
    return 6.4 * chipText(run, v).length + 18;
  }

  function cut(text, length) {
    const letters = [...text];
    return letters.length <= length ? text : letters.slice(0, length - 1).join("") + "…";
  }

  Object.assign(view, { Layout, chipText, cut, sizes: { nodeHeight, chipHeight, pitch, rowGap, blockGap } });
})((globalThis.nnopt ??= {}));
