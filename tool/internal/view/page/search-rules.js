// The search for rules: ops are ticked, rules appear as the machine finds them, and each can be tried at once
// on the graph that is shown.
(function (view) {
  "use strict";

  const { el, count } = view;

  // searchForm makes the form of the search.
  function searchForm(app) {
    const ticks = el("fieldset.ticks", { id: "opTicks" }, el("legend", null, "Find rules of these ops"));
    const field = (name, value, placeholder) => el("input", { type: "text", name, value, placeholder, size: 12, spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
    const size = el("select", { name: "size" }, [1, 2, 3].map((n) => el("option", { value: n, selected: n === 2 }, String(n))));
    app.discovered = el("div.answer", { id: "discovered", role: "status" });
    app.searchForm = el("form.writing", { id: "findForm", onsubmit: (e) => (e.preventDefault(), search(app)) }, ticks,
      el("p", null, el("label.inline", null, "others ", field("others", "")), " ", el("label.inline", null, "numbers ", field("constants", "0, 1")), " ",
        el("label.inline", null, "types ", field("types", "", "float64; bool")), " ", el("label.inline", null, "ops in a term ", size)),
      el("p", null, el("button.main", null, "Find rules"), " ", el("span.faint", null, "that the passes of the query do not know, for 15 seconds at most")));
    view.keysOf(app.searchForm);
    app.listOps = () => listOps(app, ticks);
    app.listOps();
    return el("div", null, app.searchForm, app.discovered);
  }

  // listOps has a tick for each op of the graph as it was given.
  function listOps(app, ticks) {
    const ops = [...new Set((app.run.start.nodes ?? []).map((n) => app.run.nodes[n].op))].sort();
    ticks.replaceChildren(ticks.firstChild, ...ops.map((op) => el("label.inline", null, el("input", { type: "checkbox", name: "op", value: op, checked: true }), op, " ")));
  }

  async function search(app) {
    const { elements } = app.searchForm, list = el("div"), rules = new Map();
    const ops = [...app.searchForm.querySelectorAll("[name=op]:checked")].map((e) => e.value).concat(elements.others.value).filter((op) => op.trim());
    await view.busy(app, async () => {
      const told = el("p.faint", null, "searching …");
      app.discovered.replaceChildren(told, list);
      const end = await view.request("find", { ops: ops.join(","), types: elements.types.value, constants: elements.constants.value, size: Number(elements.size.value), query: view.settings(app).query }, (r) => {
        rules.set(r.name, discovery(app, r));
        list.append(rules.get(r.name));
        told.textContent = `searching … ${count(rules.size, "rule")}`;
      });
      list.replaceChildren(...(end.names ?? []).map((name) => rules.get(name)));
      told.textContent = end.summary;
    }, app.discovered);
  }

  const cost = (x) => Number(x.toPrecision(3)).toLocaleString("en");

  // discovery draws a rule, with a button that optimizes the graph with it.
  function discovery(app, r) {
    const use = () => {
      const { rules, use } = view.rulesElements(app), before = use.checked ? rules.value.trimEnd() + "\n\n" : "";
      if (!before.includes(r.file)) view.useRules(app, before + r.file);
      app.form.requestSubmit();
    };
    return el("div.verdict.good", { "data-found": r.name },
      el("h3", null, r.name, " ", el("span.tag.new", null, r.class), " ", `cost ${cost(r.after)}, was ${cost(r.before)} `,
        el("button.small", { type: "button", "data-do": "use", onclick: use }, "try it")),
      el("code", null, r.text));
  }

  Object.assign(view, { searchForm });
})((globalThis.nnopt ??= {}));
