// Blocks: a drawn graph is cut into blocks of some dozens of applies, each of which is laid out alone when it
// comes into view. An apply keeps its block through the run, so a step leaves the picture as it is wherever
// nothing changed.
(function (view) {
  "use strict";

  const chunk = 48; // applies in a block of the first graph, about
  const merged = 80; // neighbouring blocks that shrank are merged up to this size
  const largest = 160; // and a block that grew beyond this is cut

  // A Plan gives every apply that ever lives its block.
  class Plan {
    constructor(run) {
      this.run = run;
      this.base = new Int32Array(run.nodes.length).fill(-1);
      const ids = run.start.nodes || [];
      const present = new Uint8Array(run.nodes.length);
      for (const n of ids) present[n] = 1;
      const inputs = run.nodes.map((n) => n.in || []);
      const order = sorted(run, ids, inputs, run.start.outputs || [], present);
      this.count = this.cut(order, inputs);
      this.placeNew(inputs);
    }

    // cut divides the order into blocks, each time at the place near the wanted size where the fewest values
    // cross.
    cut(order, inputs) {
      const { owner } = this.run, at = new Map(order.map((n, i) => [n, i]));
      const delta = new Int32Array(order.length + 1); // values that are live between i-1 and i, as differences
      const last = new Int32Array(order.length);
      order.forEach((n, i) => {
        for (const v of inputs[n]) if (owner[v] >= 0 && at.has(owner[v])) last[at.get(owner[v])] = i;
      });
      order.forEach((_, i) => {
        if (last[i] <= i) return;
        delta[i + 1]++;
        if (last[i] + 1 <= order.length) delta[last[i] + 1]--;
      });
      const crossing = new Int32Array(order.length + 1);
      for (let i = 1; i <= order.length; i++) crossing[i] = crossing[i - 1] + delta[i];
      let block = 0;
      for (let from = 0; from < order.length; block++) {
        let to = order.length;
        if (to - from > 1.5 * chunk) {
          to = from + chunk;
          for (let i = from + chunk / 2; i <= from + 1.5 * chunk; i++) if (crossing[i] < crossing[to]) to = i;
        }
        for (let i = from; i < to; i++) this.base[order[i]] = block;
        from = to;
      }
      return Math.max(1, block);
    }

    // placeNew gives the applies that rewrites make the block of what they replace, unless their inputs are
    // below.
    placeNew(inputs) {
      const { steps, owner } = this.run, { base } = this;
      for (const s of steps) {
        let home = s.at !== undefined && base[s.at] >= 0 ? base[s.at] : -1;
        for (const n of s.gone || []) if (base[n] >= 0 && (home < 0 || base[n] < home)) home = base[n];
        for (const n of s.new || []) {
          if (base[n] >= 0) continue;
          let b = Math.max(0, home);
          for (const v of inputs[n]) if (owner[v] >= 0) b = Math.max(b, base[owner[v]]);
          base[n] = b;
        }
      }
      for (let n = 0; n < base.length; n++) if (base[n] < 0) base[n] = 0;
    }

    // blocks returns the blocks of a drawn graph from top to bottom, each with its applies in order and their
    // layers.
    blocks(diff) {
      const { run } = this, { change, ids, inputs } = diff;
      const order = sorted(run, ids, inputs, diff.outputs, change);
      const place = new Int32Array(run.nodes.length).fill(-1);
      const count = new Int32Array(this.count);
      for (const n of order) {
        let b = this.base[n];
        for (const v of inputs[n]) {
          const o = run.owner[v];
          if (feeds(change, o, n)) b = Math.max(b, place[o]);
        }
        place[n] = b;
        count[b]++;
      }
      const group = buddies(count);
      const lists = new Map();
      for (const n of order) {
        const g = group[place[n]];
        if (!lists.has(g)) lists.set(g, []);
        lists.get(g).push(n);
      }
      const blocks = [];
      for (const g of [...lists.keys()].sort((a, b) => a - b)) {
        const list = lists.get(g);
        const pieces = list.length > largest ? Math.ceil(list.length / chunk) : 1;
        for (let i = 0; i < pieces; i++) {
          const from = Math.floor((i * list.length) / pieces), to = Math.floor(((i + 1) * list.length) / pieces);
          blocks.push({ index: blocks.length, nodes: pieces === 1 ? list : list.slice(from, to) });
        }
      }
      const blockOf = new Int32Array(run.nodes.length).fill(-1);
      for (const b of blocks) for (const n of b.nodes) blockOf[n] = b.index;
      const layer = new Int32Array(run.nodes.length);
      for (const b of blocks) layers(run, diff, b, blockOf, layer);
      return { blocks, blockOf, layer };
    }
  }

  // feeds reports whether an apply is below the owner of an input: what has gone holds nothing up but what
  // went with it.
  function feeds(change, owner, n) {
    return owner >= 0 && change[owner] && (change[owner] !== view.GONE || change[n] === view.GONE);
  }

  // sorted returns applies in an order in which inputs come first and what belongs together is adjacent.
  function sorted(run, ids, inputs, outputs, present) {
    const state = new Uint8Array(run.nodes.length), order = [], stack = [], next = [];
    const visit = (root) => {
      if (root < 0 || !present[root] || state[root]) return;
      stack.push(root);
      next.push(0);
      state[root] = 1;
      while (stack.length) {
        const n = stack[stack.length - 1], i = next[next.length - 1]++;
        if (i < inputs[n].length) {
          const o = run.owner[inputs[n][i]];
          if (feeds(present, o, n) && !state[o]) {
            state[o] = 1;
            stack.push(o);
            next.push(0);
          }
          continue;
        }
        order.push(n);
        stack.pop();
        next.pop();
      }
    };
    for (const v of outputs) visit(run.owner[v] ?? -1);
    for (const n of ids) visit(n);
    return order;
  }

  // buddies returns the group of each block: pairs of neighbours, and pairs of pairs, as long as they are
  // small together. A change in one place leaves the groups elsewhere.
  function buddies(count) {
    const group = Int32Array.from(count, (_, i) => i), sum = Int32Array.from(count), whole = new Uint8Array(count.length).fill(1);
    for (let size = 1; size < count.length; size *= 2) {
      for (let i = 0; i < count.length; i += 2 * size) {
        const j = i + size;
        if (j >= count.length) continue;
        if (!whole[i] || !whole[j] || sum[i] + sum[j] > merged) {
          whole[i] = 0;
          continue;
        }
        sum[i] += sum[j];
        for (let k = j; k < Math.min(j + size, count.length); k++) group[k] = i;
      }
    }
    return group;
  }

  // layers gives the applies of a block their layers, by the longest path from above, and moves those that
  // nothing holds up down to their first reader.
  function layers(run, diff, block, blockOf, layer) {
    const { change, inputs } = diff, { owner } = run;
    const inside = (o, n) => feeds(change, o, n) && blockOf[o] === block.index;
    for (const n of block.nodes) {
      let l = 0;
      for (const v of inputs[n]) {
        if (inside(owner[v], n)) l = Math.max(l, layer[owner[v]] + 1);
        else if (l === 0 && foreign(run, change, blockOf, block.index, v)) l = 1;
      }
      layer[n] = l;
    }
    const reader = new Map(); // apply: layer of its first reader
    for (let i = block.nodes.length - 1; i >= 0; i--) {
      const n = block.nodes[i];
      const held = inputs[n].some((v) => inside(owner[v], n));
      if (!held && reader.has(n)) layer[n] = reader.get(n) - 1;
      for (const v of inputs[n]) {
        if (inside(owner[v], n)) reader.set(owner[v], Math.min(reader.get(owner[v]) ?? Infinity, layer[n]));
      }
    }
    let spread = 0;
    for (const n of block.nodes) for (const v of inputs[n]) if (inside(owner[v], n)) spread += layer[n] - layer[owner[v]] - 1;
    block.reach = spread > 2 * block.nodes.length ? 3 : 9;
    block.chips = chipsOf(run, diff, block, blockOf, layer);
    const used = new Set(block.chips.map((c) => c.layer));
    for (const n of block.nodes) used.add(layer[n]);
    const rank = new Map([...used].sort((a, b) => a - b).map((l, i) => [l, i]));
    block.layers = rank.size;
    block.rows = new Int32Array(rank.size);
    for (const n of block.nodes) block.rows[(layer[n] = rank.get(layer[n]))]++;
    for (const c of block.chips) c.layer = rank.get(c.layer);
  }

  // chipsOf returns the chips of a block: signs above a reader for a value that comes from elsewhere or from
  // far above. Readers near each other share one.
  function chipsOf(run, diff, block, blockOf, layer) {
    const { change, inputs } = diff, { owner } = run;
    const wanted = new Map(); // value: readers
    for (const n of block.nodes) {
      for (const v of inputs[n]) {
        const o = owner[v];
        const far = feeds(change, o, n) && blockOf[o] === block.index && layer[n] - layer[o] > block.reach;
        if (!far && !foreign(run, change, blockOf, block.index, v)) continue;
        if (!wanted.has(v)) wanted.set(v, new Set());
        wanted.get(v).add(n);
      }
    }
    const chips = [];
    for (const [v, readers] of wanted) {
      let chip = null, copy = 0;
      for (const n of [...readers].sort((a, b) => layer[a] - layer[b])) {
        if (!chip || layer[n] - chip.layer > Math.min(4, block.reach)) {
          chip = { value: v, id: v + "." + copy++, layer: layer[n] - 1, readers: new Set() };
          chips.push(chip);
        }
        chip.readers.add(n);
      }
    }
    return chips;
  }

  // foreign reports whether a value is an input of the graph, or comes from a block that is not the one right
  // above. Constants stand in the label.
  function foreign(run, change, blockOf, block, v) {
    const o = run.owner[v];
    if (o < 0) return run.values[v]?.const === undefined;
    return !change[o] || (blockOf[o] !== block && blockOf[o] !== block - 1);
  }

  Object.assign(view, { Plan });
})((globalThis.nnopt ??= {}));
