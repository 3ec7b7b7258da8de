// The details of what is selected: an apply or a value, what made it and took it, what it became, and why
// rules left it alone.
(function (view) {
  "use strict";

  const { el, $, pairs, bytes } = view;

  function drawDetail(app) {
    const box = $("detail"), { run } = app;
    if (!run.hasGraph) return box.replaceChildren();
    const parts = [followed(app)];
    if (app.node >= 0) parts.push(...nodeDetail(app, app.node));
    else if (app.value >= 0) parts.push(...valueDetail(app, app.value));
    else parts.push(nothing(app));
    box.replaceChildren(...parts.flat().filter(Boolean));
  }

  function nothing(app) {
    const { run } = app;
    const item = (v) => el("li", null, valueButton(app, v));
    return el("div.nothing", null,
      el("h2", null, view.cut(String(run.data.subject || run.data.title || "Graph"), 300)),
      run.data.query ? el("p.faint", null, "query ", el("code", null, run.data.query)) : null,
      el("p.faint", null, "Choose an apply to see what it is, what made it, and why rules left it alone."),
      el("h3", null, "Inputs"), el("ul.values", null, (run.start.inputs || []).slice(0, 100).map(item)),
      el("h3", null, "Outputs at this step"), el("ul.values", null, app.diff.outputs.slice(0, 100).map(item)));
  }

  function nodeDetail(app, n) {
    const { run } = app, node = run.nodes[n], change = view.changeNames[app.diff.change[n]];
    const inputs = app.diff.change[n] ? app.diff.inputs[n] : node.in || [];
    return [
      el("h2", null, node.op, " ", el("span.tag." + (change || "absent"), null, change || "not in this step")),
      el("p.faint", null, [node.kind, node.segment ? "segment " + node.segment : ""].filter(Boolean).join(" · ")),
      view.groupDetail(app, n),
      origin(node),
      history(app, n),
      params(node),
      histogram(node.weights),
      inputs.length < 40 ? inputs.map((v) => histogram(run.values[v]?.weights)) : null,
      el("h3", null, "Reads"), el("ol.values", { start: 0 }, inputs.map((v) => el("li", null, valueButton(app, v), followButton(app, v)))),
      el("h3", null, "Gives"), (node.out || []).map((v) => outputDetail(app, v)),
      commands(app, n),
      whyNot(app, n),
    ];
  }

  function origin(node) {
    return node.from ? el("p.from", null, "from ", el("code", null, String(node.from))) : null;
  }

  // history says which rewrites made and took an apply.
  function history(app, n) {
    const { run } = app, born = run.bornAt.get(n), gone = run.goneAt.get(n);
    const line = (word, k) => k === undefined ? null : el("p.history", null, word + " ", stepButton(app, k));
    return [line("made by", born), line("taken by", gone)];
  }

  function stepButton(app, k) {
    const s = app.run.steps[k], pass = app.run.passes[s.pass]?.name || "", rule = s.rule || "";
    const text = rule && rule !== pass ? `${rule}, ${pass}` : pass || rule || "step " + k;
    return el("button.link", { onclick: () => app.goStep(k), title: `Rewrite ${k + 1}: ${view.sentence(app, s)}` }, text);
  }

  // params lists the parameters of an apply, and what its op says about itself at length.
  function params(node) {
    const list = [...(node.params || [])];
    if (node.ops) list.push(["operations", node.ops.toLocaleString("en")]);
    const lines = node.lines || [];
    return [
      list.length ? pairs(list) : null,
      lines.length ? el("pre", null, lines.join("\n")) : null,
    ];
  }

  // histogram shows weights: how many there are of each size.
  function histogram(w) {
    if (!w) return null;
    const most = Math.max(1, ...w.bins), n = w.bins.length, short = (x) => Number(x.toPrecision(4)).toString();
    const bars = w.bins.map((b, i) => (b ? `M${i + 0.08} 40v${-Math.max(0.8, (38 * b) / most).toFixed(2)}h.84V40z` : "")).join("");
    const facts = [["numbers", w.count.toLocaleString("en") + (w.sampled ? `, of which ${w.sampled.toLocaleString("en")} are shown` : "")], ["from", short(w.min)], ["to", short(w.max)], ["mean", short(w.mean)],
      w.zeros ? ["zeros", w.zeros.toLocaleString("en")] : null, w.others ? ["NaN or infinite", w.others.toLocaleString("en")] : null].filter(Boolean);
    return el("section.weights", { "data-weights": w.count }, el("h3", null, "Weights"),
      view.svg("svg.histogram", { viewBox: `0 0 ${n} 40`, preserveAspectRatio: "none", role: "img", "aria-label": `Histogram of ${w.count} numbers from ${short(w.min)} to ${short(w.max)}` }, view.svg("path", { d: bars })),
      pairs(facts));
  }

  function valueButton(app, v) {
    const { run } = app, x = run.values[v] || {};
    const current = app.followedValues.has(v) ? ".followed" : "";
    return el("button.link.value" + current, { onclick: () => app.selectValue(v, true), "data-value": v },
      run.valueLabel(v), " ", el("span.type", null, x.type || ""));
  }

  function followButton(app, v) {
    const on = app.followedValues.has(v);
    return el("button.small", { "aria-pressed": on, "data-follow": v, title: "Follow this value through all steps (f)",
      onclick: () => (on ? app.follow(-1) : app.follow(v)) }, on ? "following" : "follow");
  }

  function outputDetail(app, v) {
    const readers = readersOf(app, v), x = app.run.values[v] || {};
    const out = app.diff.outputs.indexOf(v);
    return el("div.output", null,
      el("p", null, el("span.type", null, x.type || "value"), x.bytes ? el("span.faint", null, " " + bytes(x.bytes)) : null, " ", followButton(app, v)),
      out >= 0 ? el("p.faint", null, "output " + out + " of the graph") : null,
      readers.length ? el("ul.values", null, readers.slice(0, 50).map((n) => el("li", null, nodeButton(app, n)))) : null,
      readers.length > 50 ? el("p.faint", null, `and ${readers.length - 50} more readers`) : null);
  }

  function readersOf(app, v) {
    return app.diff.ids.filter((n) => app.diff.inputs[n].includes(v));
  }

  function nodeButton(app, n) {
    return el("button.link", { onclick: () => app.select(n, true) }, app.run.nodeLabel(n));
  }

  function valueDetail(app, v) {
    const { run } = app, x = run.values[v] || {}, readers = readersOf(app, v);
    return [
      el("h2", null, run.valueLabel(v), " ", el("span.tag.kept", null, x.const !== undefined ? "constant" : "input")),
      el("p", null, el("span.type", null, x.type || ""), " ", x.bytes ? el("span.faint", null, bytes(x.bytes)) : null, " ", followButton(app, v)),
      histogram(x.weights),
      el("h3", null, "Read by"), el("ul.values", null, readers.slice(0, 200).map((n) => el("li", null, nodeButton(app, n)))),
    ];
  }

  // followed tells the life of the value that is followed.
  function followed(app) {
    const line = app.followedLine;
    if (!line) return null;
    const now = app.run.valueAt(line, app.diff.to);
    const item = (e) => el(e.value === now ? "li.here" : "li", { "aria-current": e.value === now ? "true" : null },
      e.step >= 0 ? el("div.faint", null, "↓ ", stepButton(app, e.step)) : e.made !== undefined ? el("div.faint", null, "made by ", stepButton(app, e.made)) : null,
      valueButton(app, e.value));
    const shown = line.length > 60 ? [...line.slice(0, 30), null, ...line.slice(-30)] : line;
    return el("div.life", { "data-followed": now },
      el("h3", null, "Followed value ", el("button.small", { onclick: () => app.follow(-1) }, "stop")),
      el("ol", null, shown.map((e) => (e ? item(e) : el("li.faint", null, `${line.length - 60} more`)))));
  }

  function commands(app, n) {
    const parts = [];
    for (const side of ["before", "after"]) {
      const list = app.commandsOf(n, side);
      if (!list.length) continue;
      parts.push(el("h3", null, "Commands " + side), el("ul.values", null, list.slice(0, 40).map((i) =>
        el("li", null, el("button.link", { onclick: () => app.showCommand(side, i) }, el("code", null, app.run.data.commands[side][i].text))))));
    }
    return parts;
  }

  // whyNot lists why rules did not fire at an apply: as recorded, and on demand when the page is served.
  function whyNot(app, n) {
    const recorded = app.run.misses.get(n) || [], around = app.passesAround();
    const parts = [el("h3", null, "Why rules did not fire here")];
    const asked = app.answers.get(app.diff.to + "/" + n);
    if (app.live) {
      const rule = el("input", { type: "text", placeholder: "all rules, or the name of one", "aria-label": "Rule", list: "ruleNames", spellcheck: "false" });
      const ask = (e) => {
        e.preventDefault();
        app.askWhyNot(n, rule.value.trim());
      };
      parts.push(el("form.ask", { onsubmit: ask }, rule, el("button", null, "Ask")));
    }
    if (asked) parts.push(asked.error ? el("p.error", null, asked.error) : missList(app, asked.misses, "At this step", true));
    for (const p of new Set(recorded.map((m) => m.pass))) {
      const title = p >= 0 ? "After " + (app.run.passes[p]?.name || "pass " + p) : "In the final graph";
      const now = around.has(p) || (recorded.every((m) => !around.has(m.pass)) && p === recorded[recorded.length - 1].pass);
      parts.push(missList(app, recorded.filter((m) => m.pass === p), title, now));
    }
    if (!recorded.length && !asked) parts.push(el("p.faint", null, unknown(app, n)));
    return el("div.whynot", null, parts);
  }

  function unknown(app, n) {
    if (app.live) return "Ask, and the optimizer looks again.";
    const gone = app.run.goneAt.get(n);
    if (gone !== undefined) return "A rewrite took this apply before any rule had a reason to give.";
    return "No rule that tracks its op had a reason to give.";
  }

  function missList(app, misses, title, open) {
    const doc = (rule) => app.run.data.docs?.[String(rule).split("/").pop()]?.doc;
    return el("details", { open }, el("summary", null, `${title} (${misses.length})`),
      el("dl.misses", null, misses.map((m) => [el("dt", { "data-miss": m.rule, title: doc(m.rule) }, m.rule), el("dd", null, m.why)])));
  }

  Object.assign(view, { drawDetail });
})((globalThis.nnopt ??= {}));
