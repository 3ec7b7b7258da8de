// The lines of the picture, each with what has become of it.
(function (view) {
  "use strict";

  const { NEW, GONE, KEPT } = view;

  // linesOf returns the lines into the applies of a block, with what has changed of them.
  function linesOf(picture, b, placed) {
    const { run, diff, graph, layout } = picture, list = [], chipOf = new Map();
    for (const c of b.chips) for (const n of c.readers) chipOf.set(c.value + ">" + n, c.id);
    const above = graph.blocks[b.index - 1];
    const end = (v, n, chip) => {
      if (chip !== undefined) return { id: chip, p: placed.at.get(chip), top: b.top };
      const o = run.owner[v];
      if (o < 0 || graph.blockOf[o] < 0) return null;
      if (graph.blockOf[o] === b.index) return { id: o, p: placed.at.get(o), top: b.top };
      if (!above || graph.blockOf[o] !== above.index) return null;
      return { id: o, p: layout.place(above, diff, graph).at.get(o), top: above.top };
    };
    const add = (v, n, state) => {
      const a = end(v, n, chipOf.get(v + ">" + n)), z = placed.at.get(n);
      if (!a || !a.p || a.id === n) return;
      if (b.top + z.y - 18 < a.top + a.p.y + 18) {
        list.push({ value: v, from: a.id, to: n, state, d: aside(a.p, a.top, z, b.top) });
        return;
      }
      const via = a.top === b.top ? placed.lines.get(a.id + ">" + n) || [] : [];
      const points = [[a.p.x, a.top + a.p.y + 18], ...via.map(([x, y]) => [x, b.top + y]), [z.x, b.top + z.y - 18]];
      list.push({ value: v, from: a.id, to: n, state, d: curve(points) });
    };
    for (const n of b.nodes) {
      const now = diff.inputs[n], old = diff.inputsBefore[n], change = diff.change[n];
      new Set(now).forEach((v) => {
        let state = change === NEW ? "new" : change === GONE ? "gone" : "kept";
        if (state === "kept" && old !== now && !old.includes(v)) state = "new";
        add(v, n, state);
      });
      if (change === KEPT && old !== now) new Set(old).forEach((v) => now.includes(v) || add(v, n, "gone"));
    }
    return list;
  }

  // curve returns a path that leaves downwards and arrives downwards at every point.
  function curve(points) {
    let d = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
    for (let i = 1; i < points.length; i++) {
      const [x0, y0] = points[i - 1], [x1, y1] = points[i];
      const bend = Math.max(8, Math.abs(y1 - y0) / 2);
      d += `C${x0.toFixed(1)} ${(y0 + bend).toFixed(1)} ${x1.toFixed(1)} ${(y1 - bend).toFixed(1)} ${x1.toFixed(1)} ${y1.toFixed(1)}`;
    }
    return d;
  }

  // aside returns a path from side to side, for what is not above its reader, because it has gone.
  function aside(a, top, z, bottom) {
    const s = a.x < z.x ? 1 : -1, x0 = a.x + (s * a.width) / 2, x1 = z.x - (s * z.width) / 2, y0 = top + a.y, y1 = bottom + z.y;
    const bend = Math.max(10, Math.abs(x1 - x0) / 2);
    return `M${x0.toFixed(1)} ${y0.toFixed(1)}C${(x0 + s * bend).toFixed(1)} ${y0.toFixed(1)} ${(x1 - s * bend).toFixed(1)} ${y1.toFixed(1)} ${x1.toFixed(1)} ${y1.toFixed(1)}`;
  }

  Object.assign(view, { linesOf });
})((globalThis.nnopt ??= {}));
