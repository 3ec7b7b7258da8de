// The table of rules: which fired, how often they were tried, and what that took.
(function (view) {
  "use strict";

  const { el, bar, duration, count } = view;

  function rulesTab(app) {
    const rows = rulesOf(app.run);
    const fired = rows.filter((r) => r.hits > 0), vain = rows.filter((r) => !r.hits && r.tries > 0), idle = rows.filter((r) => !r.hits && !r.tries);
    const body = el("tbody"), most = Math.max(1, ...rows.map((r) => r.time));
    let key = "time";
    const redraw = () => {
      const wanted = filter.value.toLowerCase();
      const list = [...fired, ...vain].filter((r) => (r.name + " " + r.path).toLowerCase().includes(wanted));
      list.sort((a, b) => (key === "name" ? a.name.localeCompare(b.name) : b[key] - a[key]));
      body.replaceChildren(...list.map((r) => ruleRow(app, r, most)));
    };
    const head = (name, text, numeric) => el(numeric ? "th.n" : "th", { scope: "col" },
      el("button.link", { onclick: () => ((key = name), redraw()) }, text));
    const filter = el("input", { type: "search", placeholder: "filter", "aria-label": "Filter the rules", oninput: redraw });
    redraw();
    return el("div.rules", null,
      el("p.faint", null, `${count(fired.length, "rule")} fired, ${vain.length} tried in vain, ${idle.length} never tried `, filter),
      el("table", null, el("thead", null, el("tr", null, head("name", "rule"), el("th", { scope: "col" }, "in"), head("hits", "hits", true),
        head("tries", "tries", true), head("refused", "refused", true), head("created", "made", true), head("time", "time", true))), body),
      el("details", null, el("summary", null, `${idle.length} never tried: nothing they track was in the graph`),
        el("p.names", null, idle.map((r) => [el("code", { title: app.run.data.docs?.[r.name]?.doc }, r.name), " "]))));
  }

  function rulesOf(run) {
    const rows = [];
    run.passes.forEach((p, i) => {
      for (const r of p.rules || []) {
        rows.push({ name: r.name, pass: i, path: p.name, hits: r.hits || 0, tries: r.tries || 0, refused: r.refused || 0,
          created: r.created || 0, time: r.time_ns || 0 });
      }
    });
    return rows;
  }

  function ruleRow(app, r, most) {
    const doc = app.run.data.docs?.[r.name];
    const go = () => app.firstOfRule(r.name, r.pass);
    return el(r.hits ? "tr" : "tr.quiet", { "data-rule": r.hits ? r.name : null },
      el("td", { title: doc?.doc }, r.hits && app.run.hasGraph ? el("button.link", { onclick: go }, r.name) : r.name,
        doc?.tags?.length ? el("span.faint", null, " " + doc.tags.join(" ")) : null),
      el("td.faint", null, r.path), el("td.n", null, num(r.hits)), el("td.n", null, num(r.tries)), el("td.n", null, num(r.refused)),
      el("td.n", null, num(r.created)), el("td.n.bar", null, bar(r.time, most), duration(r.time)));
  }

  const num = (n) => (n ? n.toLocaleString("en") : "");

  Object.assign(view, { rulesTab });
})((globalThis.nnopt ??= {}));
