// What a page with an engine can do: optimize another expression or file with chosen passes, run it, and have rules checked.
(function (view) {
  "use strict";

  const { el } = view;

  const example = `# A number added to itself is twice the number.
my_double: canonicalize
    (add x x) => (mul 2 x)
`;

  function liveTab(app) {
    if (!app.live) return null;
    const live = { ...app.live, ...app.typed };
    const area = (name, label, value, rows) => el("label", null, label,
      el("textarea", { name, rows, value: value || "", spellcheck: "false", autocomplete: "off", autocapitalize: "off" }));
    const line = (name, label, value) => el("label", null, label, el("input", { type: "text", name, value: value || "", spellcheck: "false", autocomplete: "off" }));
    const answer = el("div.answer", { id: "answer", role: "status" });
    const query = line("query", "Query", live.query ?? app.run.data.query), input = query.querySelector("input");
    const passes = el("fieldset.ticks", { id: "ticks" }, el("legend", null, "Passes"), el("p.faint", null, "…"));
    const button = (name, text, title, onclick) => el("button.plain", { type: "button", "data-do": name, title, onclick }, text);
    const expression = el("form.expression", { id: "liveForm", onsubmit: (e) => (e.preventDefault(), optimize(app)) },
      view.exampleBox?.(app),
      live.file
        ? el("p.file", null, el("b", { "data-file": live.file }, live.file), " ", el("button.small", { type: "button", "data-do": "forget", onclick: () => forget(app) }, "type an expression"))
        : [area("expr", "Expression", live.expr, 3), line("variables", "Variables", live.variables), line("grad", "Gradients with respect to", live.grad)],
      live.file ? line("flags", "Flags, such as --shape=x=1x3x224x224", (live.flags || []).join(" ")) : null,
      query,
      el("p.buttons", null, el("button.main", null, "Optimize"), button("stop", "Stop", "Stop what runs", () => view.transport.stop()), view.modeBox(input),
        button("open", "Open file…", "A model of ONNX or Kaldi, lines of a network, a graph, rules, a recording, a page; or drop it", () => view.chooseFiles(app)),
        button("share", "Share", "An address with the expression and the query in it", () => share(app)),
        button("run", "Run", "Run it and what became of it on the same random inputs", () => tryIt(app)), view.saveBox(app)));
    input.addEventListener("change", () => {
      expression.elements.mode.replaceWith(view.modeBox(input));
      view.listPasses(app, passes, input);
    });
    const rules = el("form.writing", { id: "rulesForm", onsubmit: (e) => (e.preventDefault(), check(app)) },
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
    app.liveForms = { expression, rules, passes, answer };
    view.listPasses(app, passes, input);
    return el("div.live", null, expression, passes, rules, answer);
  }

  // settings returns what the forms say.
  function settings(app) {
    const { expression, rules } = app.liveForms, { file } = app.live;
    const text = (name) => expression.elements[name].value.trim();
    const of = file ? { file, flags: text("flags").split(/\s+/).filter(Boolean) } : { expr: text("expr"), variables: text("variables"), grad: text("grad") };
    return { ...of, query: text("query"), rules: rules.elements.use.checked ? rules.elements.rules.value : "" };
  }

  // keep keeps what is typed but not asked, for the forms that come after.
  function keep(app) {
    const { rules, types, use } = app.liveForms.rules.elements;
    app.typed = { rules: rules.value, types: types.value, use: use.checked };
  }

  // optimize optimizes what the forms say, and shows that.
  async function optimize(app) {
    const body = settings(app);
    await busy(app, async () => {
      performance.mark("nnopt:optimize");
      const data = await view.request("optimize", body);
      data.live = body;
      keep(app);
      app.shared = body.file ? null : body;
      app.open(data, "live");
      app.question = body;
      performance.measure("nnopt:optimize", "nnopt:optimize");
      say(app, el("p", null, `${view.count(app.run.steps.length, "rewrite")}. The graph above is the new one.`));
    });
  }

  // optimizeFile optimizes a file that the engine has.
  async function optimizeFile(app, file) {
    keep(app);
    app.live = { ...app.live, file, flags: [], query: app.liveForms.expression.elements.query.value.trim() };
    app.drawTabs("live");
    await optimize(app);
  }

  // forget goes back from a file to an expression.
  function forget(app) {
    keep(app);
    app.live = { ...app.live, file: "", flags: [] };
    app.drawTabs("live");
  }

  async function check(app) {
    const { rules, types } = app.liveForms.rules.elements;
    await busy(app, async () => {
      const found = await view.request("check", { rules: rules.value, variables: types.value.trim() }), list = found.rules || [];
      say(app, ...(list.length ? list.map(verdict) : [el("p", null, "There is no rule in the text.")]));
    }, rules);
  }

  function verdict(r) {
    return el(r.ok ? "div.verdict.good" : "div.verdict.bad", { "data-verdict": r.name },
      el("h3", null, r.name, " ", el(r.ok ? "span.tag.new" : "span.tag.gone", null, r.class || (r.ok ? "holds" : "wrong")), " ", (r.tags || []).join(" ")),
      r.text ? el("code", null, r.text) : null,
      r.counterexample ? el("pre.counterexample", null, r.counterexample) : null);
  }

  // tryIt runs what the forms say, as it is and optimized.
  async function tryIt(app) {
    const seed = (app.seed = (app.seed ?? 0) + 1);
    await busy(app, async () => {
      const t = await view.request("try", { ...settings(app), seed });
      const list = (title, lines) => [el("h3", null, title), el("pre", null, (lines || []).join("\n"))];
      say(app, el(t.differ ? "div.verdict.bad" : "div.verdict.good", { "data-trial": t.differ ? "differs" : "same" },
        el("p", null, t.differ ? `They differ: ${t.differ}` : `On random inputs (seed ${seed}) both compute the same, up to rounding.`)),
        ...list("Inputs", t.inputs), ...list("Outputs", t.outputs));
    });
  }

  // share shows the address that leads here.
  function share(app) {
    const body = settings(app);
    if (body.file) return say(app, el("p", null, "A file is not part of an address. Save the page or the recording, and send that."));
    app.shared = body;
    app.remember();
    const box = el("input", { type: "text", readonly: true, value: location.href, "aria-label": "Address" });
    say(app, el("p", null, "This address leads here:"), box);
    box.select();
    navigator.clipboard?.writeText(location.href).then(() => box.before("It is copied. "), () => {});
  }

  // busy shows that something runs, and what went wrong; place is the text that an error may have its place in.
  async function busy(app, work, place) {
    if (document.body.hasAttribute("data-asking")) return;
    document.body.setAttribute("data-asking", "");
    say(app, el("p.faint", null, view.transport.state?.() ?? "…"));
    try {
      await work();
    } catch (err) {
      say(app, ...faults(err, place ?? app.liveForms.expression.elements.expr));
    } finally {
      document.body.removeAttribute("data-asking");
    }
  }

  // faults shows an error, with its place marked in what was typed.
  function faults(err, place) {
    const parts = [el("p.error", null, (err.line && !err.column ? `line ${err.line}: ` : "") + err.message)];
    if (!err.column || !place) return parts;
    const lines = place.value.split("\n"), line = (err.line || 1) - 1;
    const at = new TextDecoder().decode(new TextEncoder().encode(lines[line] ?? "").slice(0, err.column - 1)).length; // columns are in bytes
    const from = Math.max(0, at - 60);
    parts.push(el("pre.place", null, (lines[line] ?? "").slice(from, at + 60) + "\n" + " ".repeat(at - from) + "^"));
    const start = lines.slice(0, line).reduce((n, l) => n + l.length + 1, 0) + at;
    place.focus();
    place.setSelectionRange(start, start + 1);
    return parts;
  }

  const say = (app, ...parts) => app.liveForms.answer.replaceChildren(...parts);

  // shared returns what an address has: its expression and query, or null.
  function sharedIn(hash) {
    const place = new URLSearchParams(hash.slice(1)), body = {};
    for (const key of ["expr", "variables", "grad", "query", "rules"]) body[key] = place.get(key) ?? "";
    return body.expr ? body : null;
  }

  // ask fills the forms and optimizes.
  async function ask(app, body) {
    app.live = { ...body };
    app.typed = body.rules ? { rules: body.rules, use: true } : { ...app.typed, use: false };
    app.drawTabs("live");
    await optimize(app);
  }

  Object.assign(view, { liveTab, optimizeFile, settings, busy, say, sharedIn, ask });
})((globalThis.nnopt ??= {}));
