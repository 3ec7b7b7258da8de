// The picture of the graph: blocks in view are laid out and drawn, the others have only a height.
(function (view) {
  "use strict";

  const { svg, sizes, NEW, GONE, KEPT, changeNames } = view;
  const complete = 1500; // graphs of at most this many applies are drawn whole, what is out of view when there is time
  const sketched = 900; // with more than this many in view, blocks are drawn as sketches

  const later = globalThis.requestIdleCallback ? (f) => requestIdleCallback(f) : (f) => setTimeout(f, 30);

  class GraphView {
    // app hears select(node), selectValue(value); root is the svg element.
    constructor(root, app) {
      this.root = root;
      this.app = app;
      this.scene = svg("g.scene");
      this.layers = {};
      for (const name of ["sketch", "lines", "hot", "chips", "nodes"]) this.scene.append((this.layers[name] = svg("g." + name)));
      root.replaceChildren(this.scene);
      this.camera = new view.Camera(root, () => this.moved());
      root.addEventListener("click", (e) => this.clicked(e));
      new ResizeObserver(() => this.resized()).observe(root);
    }

    // resized keeps what is chosen in view.
    resized() {
      const was = this.graph && this.marks.node >= 0 && this.inView(this.marks.node);
      this.camera.forgetSize();
      if (!this.graph || !this.camera.size.height) return;
      if (was) this.reveal(this.marks.node);
      this.render();
    }

    // open takes another run.
    open(run) {
      this.run = run;
      this.plan = new view.Plan(run);
      this.layout = new view.Layout(run);
      this.hues = huesOf(run);
      this.drawn = new Map(); // apply: element
      this.shown = new Map(); // block: its elements
      this.graph = this.diff = null;
      for (const g of Object.values(this.layers)) g.replaceChildren();
    }

    // show draws a diff and keeps the eye where it was.
    show(diff, marks) {
      const anchor = this.anchor();
      this.diff = diff;
      this.marks = marks;
      this.graph = this.stack(diff);
      this.height = this.graph.height;
      this.clear();
      if (anchor) this.keep(anchor);
      else this.fit();
      this.render();
    }

    // stack cuts a drawn graph into blocks, one below the other.
    stack(diff) {
      const graph = this.plan.blocks(diff);
      let y = 0;
      for (const b of graph.blocks) {
        b.top = y;
        y += this.layout.height(b) + sizes.blockGap;
      }
      graph.height = Math.max(0, y - sizes.blockGap);
      return graph;
    }

    // prepare lays out, when there is time, the blocks of another picture that would be in view.
    prepare(makeDiff) {
      const picture = this.graph;
      let diff, graph, blocks;
      later(() => {
        if (this.graph !== picture) return;
        diff = makeDiff();
        graph = this.stack(diff);
        blocks = this.visible(this.camera.window(160), graph).slice(0, 12);
        const next = () => {
          if (this.graph !== picture || !blocks.length) return;
          this.layout.place(blocks.shift(), diff, graph, false);
          later(next);
        };
        later(next);
      });
    }

    // clear drops what belongs to blocks; the applies stay for the next picture.
    clear() {
      for (const parts of this.shown.values()) for (const e of parts.elements) e.remove();
      this.shown.clear();
      this.stale = new Set(this.drawn.keys());
    }

    // anchor returns an apply in view that should stay where it is.
    anchor() {
      if (!this.graph || !this.graph.blocks.length) return null;
      const w = this.camera.window(), cx = (w.left + w.right) / 2, cy = (w.top + w.bottom) / 2;
      let best = null, least = Infinity;
      for (const b of this.shown.keys()) {
        if (!b.placed) continue;
        for (const n of b.nodes) {
          if (this.diff.change[n] === GONE) continue;
          const p = b.placed.at.get(n), y = b.top + p.y;
          const d = n === this.marks.node && y > w.top && y < w.bottom ? -1 : Math.hypot(p.x - cx, y - cy);
          if (d < least) [best, least] = [{ node: n, x: p.x, y }, d];
        }
      }
      return best ?? { x: cx, y: cy };
    }

    keep(anchor) {
      const p = anchor.node !== undefined ? this.position(anchor.node) : null;
      if (!p) return;
      const { k } = this.camera;
      this.camera.x += k * (anchor.x - p.x);
      this.camera.y += k * (anchor.y - p.y);
      // Nothing is cut off above or below while there is room on the other side.
      const room = this.camera.size.height - 48 - k * this.height;
      this.camera.y = Math.min(24 + Math.max(0, room), Math.max(24 + Math.min(0, room), this.camera.y));
    }

    // position returns where an apply is drawn, and lays out its block for it.
    position(n) {
      const b = this.graph.blocks[this.graph.blockOf[n]];
      if (!b) return null;
      const p = this.layout.place(b, this.diff, this.graph).at.get(n);
      return { x: p.x, y: b.top + p.y };
    }

    // fit shows the whole graph, or as much of its head as is readable.
    fit(whole = false) {
      this.camera.forgetSize();
      const { width, height } = this.camera.size, blocks = this.graph?.blocks || [];
      if (!blocks.length || !width) return this.camera.set(width / 2, 40, 1);
      let left = 0, right = 0;
      for (const b of blocks.slice(0, 3)) {
        const p = this.layout.place(b, this.diff, this.graph);
        left = Math.min(left, p.left);
        right = Math.max(right, p.right);
      }
      const k = Math.min(1.15, (width - 48) / (right - left), (height - 48) / this.height);
      if (whole || k > 0.55) {
        this.camera.set(width / 2 - (k * (left + right)) / 2, Math.max(24, (height - k * this.height) / 2), k);
        return;
      }
      const readable = Math.min(1, Math.max(0.55, (width - 48) / (right - left)));
      this.camera.set(width / 2 - (readable * (left + right)) / 2, 24, readable);
    }

    inView(n) {
      const p = this.position(n), w = this.camera.window(-40);
      return p && p.x > w.left && p.x < w.right && p.y > w.top && p.y < w.bottom;
    }

    // reveal brings an apply into view.
    reveal(n) {
      const p = this.position(n);
      if (p && !this.inView(n)) this.camera.center(p.x, p.y, Math.max(this.camera.k, 0.6));
    }

    changedInView() {
      const w = this.camera.window();
      for (const b of this.visible(w)) {
        if (!b.placed) continue;
        for (const n of b.nodes) {
          if (this.diff.change[n] === KEPT) continue;
          const p = b.placed.at.get(n), y = b.top + p.y;
          if (y > w.top && y < w.bottom && p.x > w.left && p.x < w.right) return true;
        }
      }
      return false;
    }

    // changes returns the changed applies from top to bottom.
    changes() {
      const list = [];
      for (const b of this.graph.blocks) {
        const some = b.nodes.filter((n) => this.diff.change[n] !== KEPT);
        list.push(...some.sort((a, c) => this.graph.layer[a] - this.graph.layer[c]));
      }
      return list;
    }

    visible(w, graph = this.graph) {
      return graph.blocks.filter((b) => b.top < w.bottom && b.top + this.layout.height(b) > w.top);
    }

    // moved follows the camera, once a frame.
    moved() {
      if (this.frame || !this.graph) return;
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.render();
      });
    }

    render() {
      const { camera, graph } = this;
      this.scene.setAttribute("transform", `translate(${camera.x},${camera.y}) scale(${camera.k})`);
      this.root.classList.toggle("far", camera.k < 0.5);
      this.root.classList.toggle("tiny", camera.k < 0.25);
      const near = this.visible(camera.window(160));
      const many = near.reduce((s, b) => s + b.nodes.length, 0) > sketched && this.diff.ids.length > complete;
      const wanted = new Set(near);
      for (const [b, parts] of this.shown) {
        if (parts.sketch !== many || (!wanted.has(b) && this.diff.ids.length > complete)) this.drop(b);
      }
      for (const b of near) if (!this.shown.has(b)) many ? this.sketch(b) : this.draw(b);
      if (this.stale?.size) this.sweep();
      this.heat();
      this.app.rendered?.(this);
      this.idle(graph);
    }

    // sweep removes the applies of the former picture that are in none of the blocks drawn now.
    sweep() {
      for (const n of this.stale) {
        this.drawn.get(n)?.remove();
        this.drawn.delete(n);
      }
      this.stale = null;
    }

    // idle draws, when there is time, the blocks of a graph that is small enough to be drawn whole.
    idle(graph) {
      if (this.waiting || this.diff.ids.length > complete) return;
      if (graph.blocks.every((b) => this.shown.has(b))) return;
      this.waiting = true;
      later(() => {
        this.waiting = false;
        const b = this.graph?.blocks.find((c) => !this.shown.has(c));
        if (b) {
          this.draw(b);
          this.heat();
        }
        if (this.graph) this.idle(this.graph);
      });
    }

    // drawAll draws every block of a graph that may be drawn whole, for print.
    drawAll() {
      if (this.diff && this.diff.ids.length <= complete) for (const b of this.graph.blocks) if (!this.shown.has(b)) this.draw(b);
    }

    drop(b) {
      const parts = this.shown.get(b);
      for (const e of parts.elements) e.remove();
      if (!parts.sketch) {
        for (const n of b.nodes) {
          this.drawn.get(n)?.remove();
          this.drawn.delete(n);
        }
      }
      this.shown.delete(b);
    }

    draw(b) {
      const placed = this.layout.place(b, this.diff, this.graph);
      const fresh = [];
      for (const n of b.nodes) {
        const p = placed.at.get(n);
        let e = this.drawn.get(n);
        if (!e) {
          e = this.apply(n);
          this.drawn.set(n, e);
          fresh.push(e);
        }
        this.stale?.delete(n);
        this.mark(e, n);
        e.setAttribute("transform", `translate(${p.x.toFixed(1)},${(b.top + p.y).toFixed(1)})`);
      }
      this.layers.nodes.append(...fresh);
      const edges = view.linesOf(this, b, placed), elements = [];
      for (const state of ["kept", "gone", "new"]) {
        const d = edges.filter((e) => e.state === state).map((e) => e.d).join("");
        if (d) elements.push(svg("path." + state, { d }));
      }
      this.layers.lines.append(...elements);
      for (const c of b.chips) elements.push(this.chip(b, placed, c));
      this.shown.set(b, { elements, edges, sketch: false });
    }

    // sketch draws a block from afar: a bar for each apply, where it is or about where it would be.
    sketch(b) {
      const d = ["", "", "", ""], row = new Int32Array(b.layers);
      for (const n of b.nodes) {
        const l = this.graph.layer[n], p = b.placed?.at.get(n), w = this.layout.labels[n].width;
        const x = p ? p.x : (row[l]++ - (b.rows[l] - 1) / 2) * 140;
        d[this.diff.change[n]] += `M${Math.round(x - w / 2)} ${b.top + l * sizes.pitch}h${Math.round(w)}v36h${-Math.round(w)}z`;
      }
      const elements = [];
      for (const c of [KEPT, GONE, NEW]) if (d[c]) elements.push(svg("path." + changeNames[c], { d: d[c] }));
      this.layers.sketch.append(...elements);
      this.shown.set(b, { elements, edges: [], sketch: true });
    }

    // apply makes the element of an apply.
    apply(n) {
      const l = this.layout.labels[n], w = l.width, h = sizes.nodeHeight, node = this.run.nodes[n];
      const g = svg("g.node", { "data-node": n, "data-group": node.kind === "group" ? l.title : null, role: "button", tabindex: -1 },
        svg("title"),
        svg("rect.box", { x: -w / 2, y: -h / 2, width: w, height: h, rx: 6 }),
        svg("rect.hue.hue" + this.hues.get(node.kind || ""), { x: -w / 2, y: -h / 2 + 6, width: 3, height: h - 12, rx: 1.5 }),
        svg("text.title", { y: l.sub ? -3 : 4 }, l.title));
      if (l.sub) g.append(svg("text.sub", { y: 11 }, l.sub));
      g.append(svg("text.sign", { x: w / 2 - 9, y: -h / 2 + 12 }));
      return g;
    }

    // mark gives the element of an apply the state that it has in the picture.
    mark(e, n) {
      const change = changeNames[this.diff.change[n]];
      if (e.getAttribute("data-change") !== change) {
        e.setAttribute("data-change", change);
        e.lastChild.textContent = change === "new" ? "+" : change === "gone" ? "−" : "";
      }
      const rewired = this.diff.change[n] === KEPT && this.diff.inputs[n] !== this.diff.inputsBefore[n];
      const out = (this.run.nodes[n].out || []).some((v) => this.outputSet().has(v));
      const node = this.run.nodes[n];
      e.firstChild.textContent = [`${node.op}, ${rewired ? "rewired" : change}`, this.run.values[node.out?.[0]]?.type, node.from].filter(Boolean).join("\n");
      e.classList.toggle("rewired", rewired);
      e.classList.toggle("output", out);
      this.emphasize(e, n);
    }

    emphasize(e, n) {
      const { marks } = this;
      e.classList.toggle("selected", n === marks.node);
      e.classList.toggle("followed", marks.followed.has(n));
      e.classList.toggle("found", marks.found.has(n));
      e.setAttribute("aria-pressed", n === marks.node);
    }

    outputSet() {
      if (this.outputsFor !== this.diff) {
        this.outputsFor = this.diff;
        this.outs = new Set(this.diff.outputs);
      }
      return this.outs;
    }

    // remark shows other marks on the same picture.
    remark(marks) {
      this.marks = marks;
      for (const [n, e] of this.drawn) this.emphasize(e, n);
      this.heat();
    }

    chip(b, placed, c) {
      const p = placed.at.get(c.id), w = p.width, h = sizes.chipHeight, owner = this.run.owner[c.value];
      const g = svg(owner >= 0 ? "g.chip.portal" : "g.chip", { "data-value": c.value, transform: `translate(${p.x.toFixed(1)},${(b.top + p.y + 8).toFixed(1)})` },
        svg("title", null, `${this.run.valueLabel(c.value)}\n${this.run.values[c.value]?.type || ""}`),
        svg("rect", { x: -w / 2, y: -h / 2, width: w, height: h, rx: h / 2 }),
        svg("text", { y: 4 }, view.chipText(this.run, c.value)));
      this.layers.chips.append(g);
      return g;
    }

    // heat draws the lines of what is selected or followed once more, above the others.
    heat() {
      const { node, values } = this.marks, d = { selected: "", followed: "" };
      for (const parts of this.shown.values()) {
        for (const e of parts.edges) {
          if (values.has(e.value)) d.followed += e.d;
          else if (node >= 0 && (e.to === node || this.run.owner[e.value] === node)) d.selected += e.d;
        }
      }
      this.layers.hot.replaceChildren(...Object.entries(d).filter(([, x]) => x).map(([c, x]) => svg("path." + c, { d: x })));
      for (const c of this.layers.chips.children) c.classList.toggle("followed", values.has(Number(c.dataset.value)));
    }

    clicked(e) {
      if (this.camera.dragged) return;
      const node = e.target.closest("[data-node]"), value = e.target.closest("[data-value]");
      if (node) this.app.select(Number(node.dataset.node));
      else if (value) this.app.selectValue(Number(value.dataset.value), true);
      else this.app.select(-1);
    }

    focus(n) {
      this.drawn.get(n)?.focus({ preventScroll: true });
    }
  }

  // huesOf gives each kind of op a hue, those of the first graph first.
  function huesOf(run) {
    const hues = new Map();
    for (const n of run.nodes) if (!hues.has(n.kind || "")) hues.set(n.kind || "", hues.size % 8);
    return hues;
  }

  Object.assign(view, { GraphView });
})((globalThis.nnopt ??= {}));
