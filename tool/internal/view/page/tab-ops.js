// The table of ops in the graph on screen: how many applies, what they compute and how many bytes they make,
// before and now.
(function (view) {
  "use strict";

  const { el, bar, bytes, duration } = view;

  const columns = [["name", "op"], ["before", "at first"], ["now", "now"], ["ops", "operations"], ["bytes", "bytes"], ["time", "time"]];

  function opsTab(app) {
    let key = "bytes", down = true;
    const body = el("tbody"), sum = el("tfoot"), box = el("div.ops");
    const head = columns.map(([id, text]) => el(id === "name" ? "th" : "th.n", { scope: "col", "data-sort": id },
      el("button.link", { onclick: () => {
        down = key === id ? !down : id !== "name";
        key = id;
        app.drawOps();
      } }, text)));
    app.drawOps = () => {
      const rows = rowsOf(app), most = Math.max(1, ...rows.map((r) => r.bytes));
      rows.sort((a, b) => (down ? -1 : 1) * (key === "name" ? a.name.localeCompare(b.name) : a[key] - b[key]) || a.name.localeCompare(b.name));
      head.forEach((th, i) => th.setAttribute("aria-sort", columns[i][0] !== key ? "none" : down ? "descending" : "ascending"));
      body.replaceChildren(...rows.map((r) => el(r.now ? "tr" : "tr.quiet", { "data-op": r.name },
        el("td", null, r.first >= 0 ? el("button.link", { onclick: () => (app.select(r.first, true), app.showGraph()) }, r.name) : r.name),
        el("td.n", null, count(r.before)), el("td.n", null, count(r.now)), el("td.n", null, count(r.ops)),
        el("td.n.bar", null, bar(r.bytes, most), r.bytes ? bytes(r.bytes) : ""), el("td.n", null, duration(r.time)))));
      const total = (k) => rows.reduce((n, r) => n + r[k], 0);
      sum.replaceChildren(el("tr", null, el("th", { scope: "row" }, "all"), ...["before", "now", "ops"].map((k) => el("td.n", null, count(total(k)))),
        el("td.n", null, bytes(total("bytes"))), el("td.n", null, duration(total("time")))));
    };
    box.append(el("table", null, el("caption", null, "Operations are counted for products and convolutions, bytes are those that applies make; where a size is not known, neither is."),
      el("thead", null, el("tr", null, head)), body, sum));
    return box;
  }

  // rowsOf counts the applies of the step on screen by the name of their op, without its parameters.
  function rowsOf(app) {
    const { run, diff } = app, rows = new Map();
    const row = (n) => {
      const name = String(run.nodes[n].op).replace(/\{.*$/s, "");
      if (!rows.has(name)) rows.set(name, { name, before: 0, now: 0, ops: 0, bytes: 0, time: 0, first: -1 });
      return rows.get(name);
    };
    for (const n of run.start.nodes || []) row(n).before++;
    for (const n of diff?.ids ?? []) {
      if (diff.change[n] === view.GONE) continue;
      const r = row(n), node = run.nodes[n];
      r.now++;
      r.ops += node.ops ?? 0;
      for (const v of node.out || []) r.bytes += run.values[v]?.bytes ?? 0;
      if (r.first < 0) r.first = n;
    }
    for (const e of run.data.execution || []) {
      const name = String(e.name).replace(/\{.*$/s, "");
      if (rows.has(name)) rows.get(name).time += e.time_ns ?? 0;
    }
    return [...rows.values()];
  }

  // count writes a number, and nothing for 0: most cells would be zeros.
  const count = (n) => (n ? n.toLocaleString("en") : "");

  Object.assign(view, { opsTab });
})((globalThis.nnopt ??= {}));
