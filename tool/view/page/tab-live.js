// What a served page can do: optimize another expression with chosen passes, and have rules checked.
(function (view) {
  "use strict";

  const { el } = view;

  const example = `# A number added to itself is twice the number.
my_double: canonicalize
    (add x x) => (mul 2 x)
`;

  function liveTab(app) {
    if (!app.live) return null;
    const live = { ...app.live, ...app.typed }, off = new Set(live.without || []);
    const area = (name, label, value, rows) => el("label", null, label,
      el("textarea", { name, rows, value: value || "", spellcheck: "false", autocomplete: "off", autocapitalize: "off" }));
    const line = (name, label, value) => el("label", null, label, el("input", { type: "text", name, value: value || "", spellcheck: "false", autocomplete: "off" }));
    const answer = el("div.answer", { id: "answer", role: "status" });
    const expression = el("form.expression", { id: "liveForm", onsubmit: (e) => (e.preventDefault(), optimize(app, expression, answer)) },
      area("expr", "Expression", live.expr, 3),
      line("variables", "Variables", live.variables),
      line("grad", "Gradients with respect to", live.grad),
      line("query", "Query", live.query ?? app.run.data.query),
      el("p", null, el("button.main", null, "Optimize"), el("span.faint", null, " Ctrl Enter")));
    const passes = el("fieldset.ticks", { id: "ticks" }, el("legend", null, "Passes"), el("p.faint", null, "…"));
    const rules = el("form.writing", { id: "rulesForm", onsubmit: (e) => (e.preventDefault(), check(app, rules, answer)) },
      area("rules", "Rules", live.rules || example, 6),
      line("types", "Types of their names, to check them on; all if empty", live.types),
      el("p", null, el("button.main", null, "Check by machine"), " ",
        el("label.inline", null, el("input", { type: "checkbox", name: "use" }), " optimize with them")));
    for (const form of [expression, rules]) {
      form.addEventListener("keydown", (e) => {
        if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) form.requestSubmit();
        e.stopPropagation();
      });
    }
    rules.elements.use.checked = Boolean(live.use);
    app.liveForms = { expression, rules, passes };
    listPasses(app, passes, off);
    return el("div.live", null, expression, passes, rules, answer);
  }

  async function listPasses(app, box, off) {
    try {
      app.passList ??= await request("api/passes");
    } catch (err) {
      box.append(el("p.error", null, err.message));
      return;
    }
    const rows = choices(app.passList.passes || []).map((p) => el("label", { title: [p.doc, ...p.paths].filter(Boolean).join("\n") },
      el("input", { type: "checkbox", name: p.name, checked: !off.has(p.name) }), " ", p.rule ? p.name : el("b", null, p.name)));
    const filter = el("input", { type: "search", placeholder: "filter", "aria-label": "Filter the passes",
      oninput: () => rows.forEach((r) => (r.hidden = !r.textContent.includes(filter.value))) });
    box.replaceChildren(el("legend", null, "Passes"), filter, ...rows);
  }

  // choices returns what can be ticked: passes, then rules, each name once, since a query knows them by their names.
  function choices(passes) {
    const byName = new Map();
    for (const p of [...passes.filter((p) => !p.rule), ...passes.filter((p) => p.rule)]) {
      if (p.on === false) continue;
      if (!byName.has(p.name)) byName.set(p.name, { ...p, paths: [] });
      byName.get(p.name).paths.push(p.path || "");
    }
    return [...byName.values()];
  }

  // settings returns what the forms say.
  function settings(app) {
    const { expression, rules, passes } = app.liveForms;
    const text = (name) => expression.elements[name].value.trim();
    const without = [...passes.querySelectorAll("input[type=checkbox]")].filter((c) => !c.checked).map((c) => c.name);
    return { expr: text("expr"), variables: text("variables"), grad: text("grad"), query: text("query"), without,
      rules: rules.elements.use.checked ? rules.elements.rules.value : "" };
  }

  async function optimize(app, form, answer) {
    const body = settings(app), button = form.querySelector("button");
    await busy(button, answer, async () => {
      const data = await request("api/optimize", body), { rules } = app.liveForms;
      data.live = body;
      app.typed = { rules: rules.elements.rules.value, types: rules.elements.types.value, use: rules.elements.use.checked };
      app.open(data, "live");
      app.question = body;
      document.getElementById("answer").replaceChildren(el("p", null, `${view.count(app.run.steps.length, "rewrite")}. The graph above is the new one.`));
    });
  }

  async function check(app, form, answer) {
    await busy(form.querySelector("button"), answer, async () => {
      const { rules, types } = form.elements;
      const found = await request("api/check", { rules: rules.value, variables: types.value.trim() });
      answer.replaceChildren(...(found.rules || []).map(verdict));
      if (!(found.rules || []).length) answer.replaceChildren(el("p", null, "There is no rule in the text."));
    });
  }

  function verdict(r) {
    return el(r.ok ? "div.verdict.good" : "div.verdict.bad", { "data-verdict": r.name },
      el("h3", null, r.name, " ", el(r.ok ? "span.tag.new" : "span.tag.gone", null, r.class || (r.ok ? "holds" : "wrong")), " ", (r.tags || []).join(" ")),
      r.text ? el("code", null, r.text) : null,
      r.counterexample ? el("pre.counterexample", null, r.counterexample) : null);
  }

  // busy runs a request with its button off, and shows what went wrong.
  async function busy(button, answer, work) {
    button.disabled = true;
    answer.replaceChildren(el("p.faint", null, "…"));
    try {
      await work();
    } catch (err) {
      answer.replaceChildren(el("p.error", null, err.message));
    } finally {
      button.disabled = false;
    }
  }

  // request asks the program that serves the page.
  async function request(path, body) {
    const init = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    let reply;
    try {
      reply = await fetch(path, init);
    } catch {
      throw new Error("The program that serves this page does not answer.");
    }
    const text = await reply.text();
    let data;
    try {
      data = JSON.parse(text);
    } catch {
      throw new Error(text.trim() || reply.statusText);
    }
    if (data.error) {
      const place = data.line ? `line ${data.line}${data.column ? ", column " + data.column : ""}: ` : "";
      throw new Error(place + data.error);
    }
    return data;
  }

  Object.assign(view, { liveTab, request });
})((globalThis.nnopt ??= {}));
