// The figures of the run: phases, the laps of equilibria, the execution, and the report as text.
(function (view) {
  "use strict";

  const { el, svg, duration, bytes, count } = view;

  function reportTab(app) {
    const { data, passes } = app.run, root = passes.find((p) => (p.parent ?? -1) < 0);
    const tiles = [];
    if (data.compile_ns) tiles.push(["compile", duration(data.compile_ns)]);
    for (const p of data.phases || []) tiles.push([p.name, duration(p.time_ns)]);
    if (root) tiles.push(["optimize", duration(root.time_ns)]);
    if (data.link_ns) tiles.push(["link", duration(data.link_ns)]);
    if (data.calls) tiles.push([count(data.calls, "call"), duration(data.call_ns)]);
    if (root?.nodes_before !== undefined) tiles.push(["applies", `${root.nodes_before} → ${root.nodes_after}`]);
    const laps = passes.filter((p) => (p.laps || []).length > 1);
    return el("div.report", null,
      el("dl.tiles", null, tiles.map(([k, v]) => el("div", null, el("dt", null, k), el("dd", null, v)))),
      laps.map(lapTable), passes.filter((p) => p.saturation).map(saturationTable),
      (data.execution || []).length ? executionTable(data.execution) : null,
      data.report ? el("details", { open: !app.run.hasGraph }, el("summary", null, "The report as text"), el("pre", null, data.report)) : null);
  }

  function lapTable(p) {
    const most = Math.max(1, ...p.laps.map((l) => l.time_ns || 0)), top = Math.max(1, ...p.laps.map((l) => l.nodes || 0));
    const x = (i) => (100 * i) / Math.max(1, p.laps.length - 1);
    const line = p.laps.map((l, i) => `${x(i).toFixed(2)},${(29 - (27 * (l.nodes || 0)) / top).toFixed(2)}`).join(" ");
    return el("section", null, el("h3", null, p.name, el("span.faint", null, ` ${count(p.laps.length, "lap")}`)),
      svg("svg.laps", { viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": "Number of applies by lap" }, svg("polyline", { points: line })),
      el("table", null, el("thead", null, el("tr", null, ["lap", "applies", "applied", "time"].map((h) => el("th.n", { scope: "col" }, h)))),
        el("tbody", null, p.laps.map((l, i) => {
          const bar = el("i");
          bar.style.width = (100 * (l.time_ns || 0)) / most + "%";
          return el("tr", null, el("td.n", null, String(i)), el("td.n", null, String(l.nodes ?? "")), el("td.n", null, String(l.applied ?? "")),
            el("td.n.bar", null, el("span.track", null, bar), duration(l.time_ns)));
        }))));
  }

  function saturationTable(p) {
    const s = p.saturation, laps = s.laps || [], top = Math.max(1, ...laps.map((l) => l.nodes));
    const x = (i) => (100 * i) / Math.max(1, laps.length - 1);
    const line = laps.map((l, i) => `${x(i).toFixed(2)},${(29 - (27 * l.nodes) / top).toFixed(2)}`).join(" ");
    const names = (list) => (list || []).map((c) => (c.count > 1 ? `${c.name} (${c.count})` : c.name)).join(", ");
    const facts = [["ended by", names(s.ended)], ["e-nodes", String(s.nodes)], ["classes", String(s.classes)], ["cost", `${s.cost_before.toPrecision(4)} → ${s.cost_after.toPrecision(4)}`],
      ["matching", duration(s.match_ns)], ["applying", duration(s.apply_ns)], ["rebuilding", duration(s.rebuild_ns)], ["extraction", duration(s.extract_ns)]];
    const rules = (p.rules || []).filter((r) => r.tries).sort((a, b) => b.hits - a.hits || b.tries - a.tries);
    const bans = {};
    for (const l of laps) for (const c of l.banned || []) bans[c.name] = (bans[c.name] || 0) + c.count;
    return el("section.saturation", null, el("h3", null, p.name, el("span.faint", null, ` ${count(laps.length, "lap")}`)),
      el("dl.tiles", null, facts.map(([k, v]) => el("div", null, el("dt", null, k), el("dd", null, v)))),
      laps.length > 1 ? svg("svg.laps", { viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": "Number of e-nodes by lap" }, svg("polyline", { points: line })) : null,
      el("table", null, el("thead", null, el("tr", null, ["lap", "e-nodes", "classes", "matches", "applied", "time"].map((h) => el("th.n", { scope: "col" }, h)), el("th", { scope: "col" }, "banned"))),
        el("tbody", null, laps.map((l, i) => el("tr", null, [i, l.nodes, l.classes, l.matches, l.applied].map((v) => el("td.n", null, String(v))),
          el("td.n", null, duration(l.match_ns + l.apply_ns + l.rebuild_ns)), el("td", null, names(l.banned)))))),
      el("table", null, el("thead", null, el("tr", null, el("th", { scope: "col" }, "rule"), ["matches", "applied", "bans"].map((h) => el("th.n", { scope: "col" }, h)))),
        el("tbody", null, rules.map((r) => el("tr", null, el("td", null, r.name), [r.tries, r.hits, bans[r.name] || 0].map((v) => el("td.n", null, String(v))))))));
  }

  function executionTable(rows) {
    const most = Math.max(1, ...rows.map((r) => r.time_ns || 0));
    return el("section", null, el("h3", null, "Execution"),
      el("table", null, el("thead", null, el("tr", null, el("th", { scope: "col" }, "op"), ["applies", "calls", "bytes", "time"].map((h) => el("th.n", { scope: "col" }, h)))),
        el("tbody", null, rows.map((r) => {
          const bar = el("i");
          bar.style.width = (100 * (r.time_ns || 0)) / most + "%";
          return el("tr", null, el("td", null, r.name), el("td.n", null, String(r.applies ?? "")), el("td.n", null, String(r.calls ?? "")),
            el("td.n", null, bytes(r.bytes)), el("td.n.bar", null, el("span.track", null, bar), duration(r.time_ns)));
        }))));
  }

  Object.assign(view, { reportTab });
})((globalThis.nnopt ??= {}));
