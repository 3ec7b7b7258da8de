// The figures of the run: phases, the laps of equilibria, the execution, and the report as text.
(function (view) {
  "use strict";

  const { el, svg, bar, duration, bytes, count } = view;

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
    return el("div.report", null, tilesOf(tiles),
      laps.map(lapTable), passes.filter((p) => p.saturation).map(saturationTable),
      (data.execution || []).length ? executionTable(data.execution) : null,
      data.report ? el("details", { open: !app.run.hasGraph }, el("summary", null, "The report as text"), el("pre", null, data.report)) : null);
  }

  const tilesOf = (list) => el("dl.tiles", null, list.map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, value))));
  const word = (text) => el("th", { scope: "col" }, text);
  const number = (text) => el("th.n", { scope: "col" }, text);
  const cell = (x) => el("td.n", null, String(x ?? ""));
  const table = (heads, rows) => el("table", null, el("thead", null, el("tr", null, heads)), el("tbody", null, rows));
  const title = (p, laps) => el("h3", null, p.name, el("span.faint", null, ` ${count(laps.length, "lap")}`));

  // lapChart draws how a number went from lap to lap.
  function lapChart(numbers, label) {
    const most = Math.max(1, ...numbers), last = Math.max(1, numbers.length - 1);
    const points = numbers.map((n, i) => `${((100 * i) / last).toFixed(2)},${(29 - (27 * n) / most).toFixed(2)}`).join(" ");
    return svg("svg.laps", { viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": label }, svg("polyline", { points }));
  }

  function lapTable(p) {
    const most = Math.max(1, ...p.laps.map((l) => l.time_ns || 0));
    return el("section", null, title(p, p.laps), lapChart(p.laps.map((l) => l.nodes || 0), "Number of applies by lap"),
      table(["lap", "applies", "applied", "time"].map(number), p.laps.map((l, i) =>
        el("tr", null, cell(i), cell(l.nodes), cell(l.applied), el("td.n.bar", null, bar(l.time_ns, most), duration(l.time_ns))))));
  }

  // saturationTable tells how a saturation went: how it ended, its laps, and its rules.
  function saturationTable(p) {
    const s = p.saturation, laps = s.laps || [];
    const facts = [["ended by", names(s.ended)], ["e-nodes", String(s.nodes)], ["classes", String(s.classes)], ["cost", `${s.cost_before.toPrecision(4)} → ${s.cost_after.toPrecision(4)}`],
      ["matching", duration(s.match_ns)], ["applying", duration(s.apply_ns)], ["rebuilding", duration(s.rebuild_ns)], ["extraction", duration(s.extract_ns)]];
    return el("section.saturation", null, title(p, laps), tilesOf(facts),
      laps.length > 1 ? lapChart(laps.map((l) => l.nodes), "Number of e-nodes by lap") : null,
      table([...["lap", "e-nodes", "classes", "matches", "applied", "time"].map(number), word("banned")], laps.map((l, i) =>
        el("tr", null, [i, l.nodes, l.classes, l.matches, l.applied].map(cell), cell(duration(l.match_ns + l.apply_ns + l.rebuild_ns)), el("td", null, names(l.banned))))),
      saturationRules(p, laps));
  }

  function saturationRules(p, laps) {
    const bans = new Map();
    for (const l of laps) for (const c of l.banned || []) bans.set(c.name, (bans.get(c.name) ?? 0) + c.count);
    const rules = (p.rules || []).filter((r) => r.tries).sort((a, b) => b.hits - a.hits || b.tries - a.tries);
    return table([word("rule"), ...["matches", "applied", "bans"].map(number)], rules.map((r) =>
      el("tr", null, el("td", null, r.name), [r.tries, r.hits, bans.get(r.name) ?? 0].map(cell))));
  }

  // names writes a list of things that are counted.
  const names = (list) => (list || []).map((c) => (c.count > 1 ? `${c.name} (${c.count})` : c.name)).join(", ");

  function executionTable(rows) {
    const most = Math.max(1, ...rows.map((r) => r.time_ns || 0));
    return el("section", null, el("h3", null, "Execution"),
      table([word("op"), ...["applies", "calls", "bytes", "time"].map(number)], rows.map((r) =>
        el("tr", null, el("td", null, r.name), cell(r.applies), cell(r.calls), cell(bytes(r.bytes)), el("td.n.bar", null, bar(r.time_ns, most), duration(r.time_ns))))));
  }

  Object.assign(view, { reportTab });
})((globalThis.nnopt ??= {}));
