// The map beside the graph: all layers of the whole graph, what changed, and the part in view.
(function (view) {
  "use strict";

  const { KEPT, NEW, GONE } = view;

  // A GraphMap draws into a canvas, and moves the camera where it is pressed.
  class GraphMap {
    constructor(canvas, picture) {
      this.canvas = canvas;
      this.picture = picture;
      const go = (e) => {
        if (!e.buttons || !this.scale) return;
        const { camera } = picture, { height } = camera.size;
        camera.set(camera.x, height / 2 - (camera.k * (e.clientY - canvas.getBoundingClientRect().top)) / this.scale, camera.k);
      };
      canvas.addEventListener("pointerdown", (e) => {
        canvas.setPointerCapture(e.pointerId);
        go(e);
      });
      canvas.addEventListener("pointermove", go);
    }

    draw() {
      const { canvas, picture } = this, { height } = picture.camera.size;
      if (!picture.graph || height < 50) return;
      const ratio = globalThis.devicePixelRatio || 1, width = 44;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      const c = canvas.getContext("2d"), style = getComputedStyle(canvas);
      const color = (name) => style.getPropertyValue(name);
      c.scale(ratio, ratio);
      c.clearRect(0, 0, width, height);
      const scale = (this.scale = Math.min(0.25, (height - 8) / Math.max(1, picture.height)));
      if (this.rowsOf !== picture.graph) this.count();
      const colors = { [KEPT]: color("--map"), [NEW]: color("--new"), [GONE]: color("--gone") };
      for (const kind of [KEPT, GONE, NEW]) {
        c.fillStyle = colors[kind];
        for (const { y, n } of this.rows) {
          if (!n[kind]) continue;
          const before = kind === KEPT ? 0 : kind === GONE ? n[KEPT] : n[KEPT] + n[GONE];
          const unit = Math.min(5, 38 / (n[KEPT] + n[GONE] + n[NEW]));
          c.fillRect(3 + before * unit, y * scale, Math.max(n[kind] * unit - 0.5, kind === KEPT ? 1 : 2), Math.max(1, 36 * scale));
        }
      }
      const w = picture.camera.window();
      c.strokeStyle = color("--accent");
      c.lineWidth = 1.5;
      const top = Math.max(1, w.top * scale), bottom = Math.min(height - 1, w.bottom * scale);
      if (bottom > top) c.strokeRect(1, top, width - 2, bottom - top);
    }

    // count counts the applies of each layer by their change.
    count() {
      const { graph, diff } = this.picture;
      this.rowsOf = graph;
      this.rows = [];
      for (const b of graph.blocks) {
        const rows = Array.from({ length: b.layers }, (_, l) => ({ y: b.top + l * view.sizes.pitch, n: [0, 0, 0, 0] }));
        for (const n of b.nodes) rows[graph.layer[n]].n[diff.change[n]]++;
        this.rows.push(...rows);
      }
    }
  }

  Object.assign(view, { GraphMap });
})((globalThis.nnopt ??= {}));
