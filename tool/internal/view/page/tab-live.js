// What else the engine can do: passes that are ticked, and rules that are written here and checked by
// machine. search-rules.js has those that the machine finds.
(function (view) {
  "use strict";

  const { el } = view;

  const example = `# A number added to itself is twice the number.
my_double: canonicalize
    (add x x) => (mul 2 x)
`;

  // liveTab makes the forms, once: what was typed stays.
  function liveTab(app) {
    if (!app.live) return null;
    return (app.liveBox ??= makeTab(app));
  }

  function makeTab(app) {
    const passes = el("fieldset.ticks", { id: "ticks" }, el("legend", null, "Passes"), el("p.faint", null, "…"));
    const types = el("input", { type: "text", name: "types", spellcheck: "false", autocomplete: "off" });
    const use = el("input", { type: "checkbox", name: "use" });
    const text = el("textarea", { name: "rules", rows: 7, spellcheck: "false", autocomplete: "off", autocapitalize: "off", value: example });
    app.verdicts = el("div.answer", { id: "verdicts", role: "status" });
    app.rulesForm = el("form.writing", { id: "rulesForm", onsubmit: (e) => (e.preventDefault(), check(app)) },
      el("label", null, "Rules of your own", text),
      el("label", null, "Types of their names, to check them on; all if empty", types),
      el("p", null, el("button.main", null, "Check by machine"), " ", el("label.inline", null, use, " optimize with them")));
    view.keysOf(app.rulesForm);
    app.listPasses = () => view.listPasses(app, passes, app.form.elements.query);
    app.listPasses();
    return el("div.live", null, passes, el("div", null, app.rulesForm, app.verdicts), view.searchForm(app));
  }

  // rulesElements returns the fields of the rules, which may not have been opened yet.
  const rulesElements = (app) => (liveTab(app), app.rulesForm.elements);

  // rulesInUse returns the rules to optimize with.
  function rulesInUse(app) {
    const { rules, use } = app.rulesForm?.elements ?? {};
    return use?.checked ? rules.value : "";
  }

  // useRules writes rules to optimize with, or none.
  function useRules(app, text) {
    if (!text && !app.rulesForm) return;
    liveTab(app);
    const { rules, use } = app.rulesForm.elements;
    if (text) rules.value = text;
    use.checked = Boolean(text);
  }

  async function check(app) {
    const { rules, types } = app.rulesForm.elements;
    await view.busy(app, async () => {
      const found = await view.request("check", { rules: rules.value, variables: types.value.trim() }), list = found.rules || [];
      app.verdicts.replaceChildren(...(list.length ? list.map(verdict) : [el("p", null, "There is no rule in the text.")]));
    }, app.verdicts);
  }

  function verdict(r) {
    return el(r.ok ? "div.verdict.good" : "div.verdict.bad", { "data-verdict": r.name },
      el("h3", null, r.name, " ", el(r.ok ? "span.tag.new" : "span.tag.gone", null, r.class || (r.ok ? "holds" : "wrong")), " ", (r.tags || []).join(" ")),
      r.text ? el("code", null, r.text) : null,
      r.counterexample ? el("pre.counterexample", null, r.counterexample) : null);
  }

  Object.assign(view, { liveTab, rulesElements, rulesInUse, useRules });
})((globalThis.nnopt ??= {}));
