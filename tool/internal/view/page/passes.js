// The timeline: every pass of the run in order, nested as it ran, with its time and what it changed.
(function (view) {
  "use strict";

  const { el, $, bar, duration, count } = view;

  // drawTimeline lists the passes. A click leads to the step of a pass.
  function drawTimeline(app) {
    const { run } = app, total = Math.max(1, ...run.passes.map((p) => (p.start_ns || 0) + (p.time_ns || 0)));
    const depth = [], rows = [];
    if (run.hasGraph) rows.push(startRow(app));
    run.passes.forEach((p, i) => {
      depth[i] = p.parent >= 0 ? depth[p.parent] + 1 : 0;
      rows.push(passRow(app, p, i, depth[i], total));
    });
    $("timeline").replaceChildren(...rows);
  }

  function startRow(app) {
    return el("li", null,
      el("button.pass", { onclick: () => app.go(0) }, el("span.name", null, "start"), el("span.count", null, ""),
        el("span.when.faint", null, count(app.run.start.nodes.length, "apply", "applies"))));
  }

  function passRow(app, p, i, depth, total) {
    const [from, to] = p.steps || [0, 0], rewrites = to - from;
    const changed = rewrites || p.changed || 0;
    const name = el("span.name", null, p.name);
    name.style.paddingLeft = 0.8 * depth + "em";
    const facts = [p.class, duration(p.time_ns), p.nodes_before !== undefined ? `${p.nodes_before} → ${p.nodes_after} applies` : "",
      ...(p.counters || []).map(([k, v]) => `${k} ${v}`), app.run.data.docs?.[p.name]?.doc, p.error].filter(Boolean);
    const row = el("li", { "data-pass": i },
      el("button.pass", { title: facts.join("\n"), onclick: () => app.goPass(i) },
        name,
        el("span.count", { "aria-label": changed ? count(changed, "change") : null }, changed ? String(changed) : ""),
        el("span.when", null, bar(p.time_ns, total, p.start_ns), el("span.time", null, duration(p.time_ns)))));
    if (!changed) row.classList.add("quiet");
    if (p.error) row.classList.add("failed");
    return row;
  }

  // markTimeline shows which pass the step on screen belongs to.
  function markTimeline(app) {
    const pass = app.shown().pass;
    for (const row of $("timeline").children) {
      const here = row.dataset.pass !== undefined ? Number(row.dataset.pass) === pass : pass < 0;
      row.classList.toggle("here", here);
      if (here) {
        row.dataset.step = app.stop;
        row.firstChild.setAttribute("aria-current", "step");
        requestAnimationFrame(() => scrollTo(row));
      } else if (row.dataset.step !== undefined) {
        delete row.dataset.step;
        row.firstChild.removeAttribute("aria-current");
      }
    }
  }

  function scrollTo(row) {
    if (!row.isConnected) return; // another run has been opened since
    const list = row.parentElement, top = row.offsetTop - list.offsetTop;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + row.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + row.offsetHeight - list.clientHeight;
  }

  // drawStep says what the step on screen did: how many applies it changed and which rules did it.
  function drawStep(app) {
    const { run } = app, stop = app.shown(), box = $("step");
    const pass = run.passes[stop.pass];
    const { change } = app.diff;
    let fresh = 0, gone = 0;
    for (const n of app.diff.ids) {
      if (change[n] === view.NEW) fresh++;
      else if (change[n] === view.GONE) gone++;
    }
    const parts = [el("b", null, pass ? pass.name : "start")];
    if (fresh || gone) parts.push(el("span.new", null, "+" + fresh), el("span.gone", null, "−" + gone));
    else if (stop.from === stop.to) parts.push(el("span.faint", null, stop.pass < 0 ? "the graph as it came" : "nothing changed"));
    const counters = (pass?.counters || []).filter(([, v]) => v !== "0").map(([k, v]) => `${k.replaceAll("_", " ")} ${v}`);
    if (counters.length) parts.push(el("span.faint", null, counters.join(", ")));
    if (stop.to - stop.from > 1) parts.push(slider(app, stop));
    if (app.fine >= 0) parts.push(el("span.faint", null, sentence(app, run.steps[app.fine])));
    box.replaceChildren(...parts, ...ruleChips(app, stop));
  }

  function slider(app, stop) {
    const n = stop.to - stop.from, at = app.fine < 0 ? 0 : app.fine - stop.from + 1;
    return el("label.rewrites", { title: "Single rewrites of this pass (shift and arrows)" },
      el("input", { type: "range", min: 0, max: n, value: at, "aria-label": "Rewrite of this pass, 0 for all",
        oninput: (e) => app.goFine(stop.from + Number(e.target.value) - 1) }),
      at ? `rewrite ${at} of ${n}` : `all ${n} rewrites`);
  }

  function ruleChips(app, stop) {
    const hits = new Map();
    for (let k = stop.from; k < stop.to; k++) {
      const name = app.run.steps[k].rule || "";
      if (name) hits.set(name, (hits.get(name) || 0) + 1);
    }
    const now = app.fine >= 0 ? app.run.steps[app.fine].rule : null;
    return [...hits].sort((a, b) => b[1] - a[1]).map(([name, n]) =>
      el(name === now ? "button.rule.here" : "button.rule", { "data-rule": name, title: app.run.data.docs?.[name]?.doc || "Show where it fired",
        onclick: () => app.nextOfRule(name, stop) }, name, " ", el("b", null, String(n))));
  }

  // sentence says what a rewrite did, in the labels of the applies.
  function sentence(app, s) {
    const { run } = app, list = (ids) => (ids || []).slice(0, 4).map((n) => run.nodeLabel(n)).join(", ") + ((ids || []).length > 4 ? " …" : "");
    const gone = list(s.gone), fresh = list(s.new);
    if (gone && fresh) return gone + " → " + fresh;
    if (gone) return gone + " gone";
    if (fresh) return fresh + " new";
    return (s.rewired || []).length ? "rewired " + list(s.rewired.map(([n]) => n)) : "";
  }

  Object.assign(view, { drawTimeline, markTimeline, drawStep, sentence });
})((globalThis.nnopt ??= {}));
