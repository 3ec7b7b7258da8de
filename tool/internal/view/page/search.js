// Search: applies and values of the step on screen, passes, rules and commands, by any part of their text.
(function (view) {
  "use strict";

  const { el, $ } = view;
  const most = 60;

  function startSearch(app) {
    const input = $("search"), list = $("hits");
    let hits = [], at = 0;
    const close = () => {
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
    };
    const mark = (i) => {
      list.children[at]?.removeAttribute("aria-selected");
      at = Math.max(0, Math.min(hits.length - 1, i));
      const e = list.children[at];
      if (!e) return;
      e.setAttribute("aria-selected", "true");
      e.scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", e.id);
    };
    const choose = (i) => {
      close();
      hits[i]?.go();
    };
    const look = () => {
      const found = find(app, input.value.trim().toLowerCase());
      hits = found.hits;
      app.setFound(found.nodes);
      const items = hits.map((h, i) => el("li", { role: "option", id: "hit" + i, onpointerdown: (e) => (e.preventDefault(), choose(i)) },
        el("span.kind", null, h.kind), el("span.text", null, h.text), h.more ? el("span.faint", null, h.more) : null));
      if (!hits.length && input.value) items.push(el("li.faint", null, "nothing found"));
      list.replaceChildren(...items);
      list.hidden = !input.value;
      input.setAttribute("aria-expanded", String(!list.hidden));
      at = 0;
      mark(0);
    };
    // The sign of the key that leads here is no part of the text.
    input.addEventListener("beforeinput", (e) => {
      if (e.data === "/" && input.value === "" && performance.now() - app.searchedAt < 300) e.preventDefault();
    });
    input.addEventListener("input", look);
    input.addEventListener("focus", () => input.value && look());
    input.addEventListener("blur", close);
    input.addEventListener("keydown", (e) => {
      e.stopPropagation();
      if (e.key === "ArrowDown") mark(at + 1);
      else if (e.key === "ArrowUp") mark(at - 1);
      else if (e.key === "Enter") choose(at);
      else if (e.key === "Escape") {
        input.value = "";
        look();
        close();
        input.blur();
      } else return;
      e.preventDefault();
    });
  }

  // find returns what has a text in it: the first hits of each kind, and all applies of the picture.
  function find(app, text) {
    const hits = [], nodes = new Set(), { run } = app;
    if (!text) return { hits, nodes };
    const add = (kind, label, more, go) => hits.push({ kind, text: label, more, go });
    const has = (...words) => words.some((w) => w !== undefined && String(w).toLowerCase().includes(text));
    for (const n of app.diff?.ids || []) {
      const node = run.nodes[n];
      const outs = (node.out || []).map((v) => run.values[v]?.name);
      if (!has(node.op, node.from, ...outs) && !(node.params || []).some(([k, v]) => has(k, v))) continue;
      nodes.add(n);
      if (nodes.size <= most / 2) add("apply", run.nodeLabel(n), view.changeNames[app.diff.change[n]], () => app.select(n, true));
    }
    for (const v of run.start.inputs || []) {
      if (has(run.values[v]?.name, run.values[v]?.type)) add("input", run.valueLabel(v), run.values[v]?.type, () => app.selectValue(v));
    }
    run.passes.forEach((p, i) => {
      if (has(p.name, p.class)) add("pass", p.name, p.class, () => app.goPass(i));
    });
    const rules = new Map();
    run.passes.forEach((p, i) => (p.rules || []).forEach((r) => r.hits && has(r.name) && rules.set(r.name, rules.get(r.name) ?? i)));
    for (const [name, pass] of rules) add("rule", name, run.passes[pass].name, () => app.firstOfRule(name, pass));
    for (const side of ["before", "after"]) {
      let shown = 0;
      (run.data.commands?.[side] || []).forEach((c, i) => {
        if (shown < most / 6 && has(c.text)) {
          shown++;
          add("command " + side, c.text, "", () => app.showCommand(side, i));
        }
      });
    }
    return { hits: hits.slice(0, most * 2), nodes };
  }

  Object.assign(view, { startSearch });
})((globalThis.nnopt ??= {}));
