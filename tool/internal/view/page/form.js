// What is to be optimized, at the top of a page with an engine: an expression or a file, the query, and what
// to do with them.
(function (view) {
  "use strict";

  const { el, $, count } = view;

  // startCompose makes the form, once.
  function startCompose(app) {
    if (app.form || !app.live) return;
    const button = (name, text, title, onclick) => el("button.plain", { type: "button", "data-do": name, title, onclick }, text);
    const query = el("input", { type: "text", name: "query", spellcheck: "false", autocomplete: "off" });
    const stop = button("stop", "Stop", "Stop what runs", () => view.transport.stop());
    const more = el("button.plain.only-narrow", { type: "button", "data-do": "more", "aria-expanded": "false", title: "The query, and what else can be done",
      onclick: () => more.setAttribute("aria-expanded", String($("compose").classList.toggle("all"))) }, "More");
    stop.setAttribute("aria-disabled", "true");
    app.given = el("div.given");
    app.answer = el("div.answer", { id: "answer", role: "status" });
    app.form = el("form", { id: "liveForm", onsubmit: (e) => (e.preventDefault(), optimize(app)) }, app.given,
      el("div.asked", null, el("button.main", null, "Optimize"), stop, view.exampleBox?.(app),
        button("open", "Open file…", "A model of ONNX or Kaldi, lines of a network, a graph, rules, a recording, a page; or drop it anywhere", () => view.chooseFiles(app)), more,
        el("label.query", null, el("span", null, "Query"), query), view.modeBox(query),
        button("run", "Run", "Run it and what became of it on the same random inputs", () => tryIt(app)), view.saveBox(app),
        button("share", "Share", "An address with the expression and the query in it", () => share(app))));
    query.addEventListener("change", () => {
      app.form.elements.mode.replaceWith(view.modeBox(query));
      app.listPasses?.();
    });
    keysOf(app.form);
    $("compose").replaceChildren(app.form, app.answer);
    $("compose").hidden = false;
  }

  // keysOf keeps keys in a form from being keys of the page. With control, enter asks what the form asks.
  function keysOf(form) {
    form.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) form.requestSubmit();
      if (e.key !== "Escape") e.stopPropagation();
    });
  }

  // fillCompose shows what is optimized in the form: app.live.
  function fillCompose(app) {
    if (!app.live) return;
    startCompose(app);
    const { live, given, form } = app;
    const line = (name, label, value, more) => el("label." + name, null, el("span", null, label), el("input", { type: "text", name, value: value || "", spellcheck: "false", autocomplete: "off", autocapitalize: "off", ...more }));
    if (live.file) {
      if (given.dataset.file !== live.file) {
        given.replaceChildren(el("p.file", null, el("b", { "data-file": live.file }, live.file), " ", el("button.small", { type: "button", "data-do": "forget", onclick: () => forget(app) }, "type an expression")),
          line("flags", "Flags, such as --shape=x=1x3x224x224", (live.flags || []).join(" ")));
      }
      given.dataset.file = live.file;
    } else {
      if (!form.elements.expr) {
        given.replaceChildren(el("label.expr", null, el("span", null, "Expression"), el("textarea", { name: "expr", rows: 2, spellcheck: "false", autocomplete: "off", autocapitalize: "off" })),
          line("variables", "Variables"), line("grad", "Gradients with respect to"));
      }
      delete given.dataset.file;
      for (const name of ["expr", "variables", "grad"]) set(form.elements[name], live[name] ?? "");
    }
    set(form.elements.query, live.query ?? app.run.data.query ?? "");
    form.elements.save.replaceWith(view.saveBox(app));
    form.elements.mode.replaceWith(view.modeBox(form.elements.query));
  }

  // set sets a field, unless that would only move the cursor.
  function set(field, value) {
    if (field.value !== value) field.value = value;
  }

  // settings returns what the forms say.
  function settings(app) {
    const { elements } = app.form, { file } = app.live;
    const text = (name) => elements[name].value.trim();
    const of = file ? { file, flags: text("flags").split(/\s+/).filter(Boolean) } : { expr: text("expr"), variables: text("variables"), grad: text("grad") };
    return { ...of, query: text("query"), rules: view.rulesInUse(app) };
  }

  // optimize optimizes what the forms say, and shows that.
  async function optimize(app, { back = false } = {}) {
    const body = settings(app);
    await busy(app, async () => {
      performance.mark("nnopt:optimize");
      const data = await view.request("optimize", body);
      data.live = body;
      // What was there before is one step back in the browser.
      const shared = body.file ? null : body;
      if (!back && JSON.stringify(shared) !== JSON.stringify(app.shared ?? null)) app.visit();
      app.shared = shared;
      app.open(data);
      app.question = body;
      performance.measure("nnopt:optimize", "nnopt:optimize");
      done(app);
    });
  }

  // done says what became of the graph, and leads to it.
  function done(app) {
    const { run } = app, n = run.steps.length, root = run.passes.find((p) => (p.parent ?? -1) < 0);
    if (!run.hasGraph) return say(app, el("p", null, "A profile: it has times, and no graph."));
    if (!n) return say(app, el("p", null, "0 rewrites: no pass of this query found anything to do."));
    const link = (name, text, onclick) => el("button.small", { type: "button", "data-do": name, onclick }, text);
    say(app, el("p", null, `${count(n, "rewrite")}: ${count(run.start.nodes?.length ?? 0, "apply", "applies")} became ${root?.nodes_after ?? 0}. `,
      link("step", "first change", () => (app.showGraph(), app.go(app.nextBusy(1)))), " ", link("result", "result", () => (app.showGraph(), app.go(run.stops.length - 1))), " ",
      link("both", "before and after", () => {
        app.showGraph();
        if (!document.body.classList.contains("beside")) app.toggleBeside();
        app.go(run.stops.length - 1);
      })));
  }

  // optimizeFile optimizes a file that the engine has.
  async function optimizeFile(app, file) {
    app.live = { ...app.live, file, flags: [], query: app.form.elements.query.value.trim() };
    fillCompose(app);
    await optimize(app);
  }

  // forget goes back from a file to an expression.
  function forget(app) {
    app.live = { expr: "", variables: "", grad: "", ...app.live, file: "", flags: [], query: app.form.elements.query.value.trim() };
    fillCompose(app);
    app.form.elements.expr.focus();
  }

  // tryIt runs what the forms say, as it is and optimized.
  async function tryIt(app) {
    const seed = (app.seed = (app.seed ?? 0) + 1);
    await busy(app, async () => {
      const t = await view.request("try", { ...settings(app), seed });
      const list = (title, lines) => [el("h3", null, title), el("pre", null, (lines || []).join("\n"))];
      say(app, el(t.differ ? "div.verdict.bad" : "div.verdict.good", { "data-trial": t.differ ? "differs" : "same" },
        el("p", null, t.differ ? `They differ: ${t.differ}` : `On random inputs (seed ${seed}) both compute the same, up to ${t.accepted ? `what the graph itself does: ${t.accepted}` : "rounding"}.`)),
        el("div.trial", null, el("div", null, list("Inputs", t.inputs)), el("div", null, list("Outputs", t.outputs))));
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

  // busy shows that something runs, and what went wrong, in a box of answers.
  async function busy(app, work, box = app.answer) {
    if (document.body.hasAttribute("data-asking")) return;
    const stop = app.form.querySelector("[data-do=stop]");
    document.body.setAttribute("data-asking", "");
    stop.setAttribute("aria-disabled", "false");
    box.replaceChildren(el("p.faint", null, view.transport.state?.() ?? "…"));
    try {
      await work();
    } catch (err) {
      box.replaceChildren(...view.faults(app, err));
    } finally {
      document.body.removeAttribute("data-asking");
      stop.setAttribute("aria-disabled", "true");
    }
  }

  // say shows something below the form.
  const say = (app, ...parts) => app.answer.replaceChildren(...parts, el("button.small.shut", { type: "button", "aria-label": "Close the answer", onclick: () => app.answer.replaceChildren() }, "close"));

  // sharedIn returns what an address has: its expression and query, or null.
  function sharedIn(hash) {
    const place = new URLSearchParams(hash.slice(1)), body = {};
    for (const key of ["expr", "variables", "grad", "query", "rules"]) body[key] = place.get(key) ?? "";
    return body.expr ? body : null;
  }

  // ask fills the forms and optimizes.
  async function ask(app, body, options) {
    app.live = { ...body };
    view.useRules(app, body.rules);
    fillCompose(app);
    await optimize(app, options);
  }

  Object.assign(view, { fillCompose, keysOf, optimizeFile, settings, busy, say, sharedIn, ask });
})((globalThis.nnopt ??= {}));
