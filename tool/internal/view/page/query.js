// The query as text, and the ways to edit it: a mode, passes that are ticked, tags and settings.
(function (view) {
  "use strict";

  const { el } = view;
  const modes = ["fast_run", "fast_compile", "debug", "none"];

  // termsOf cuts a query at spaces that are in no bracket.
  function termsOf(query) {
    const terms = [];
    let depth = 0, term = "";
    for (const c of query) {
      if ("([{".includes(c)) depth++;
      if (")]}".includes(c)) depth--;
      if (depth <= 0 && /\s/.test(c)) {
        if (term) terms.push(term);
        term = "";
      } else term += c;
    }
    if (term) terms.push(term);
    return terms;
  }

  const bare = (term) => term.replace(/^[+\-&~]/, "").replace(/[{(].*$/s, "");
  const signOf = (query, name) => termsOf(query).filter((t) => bare(t) === name).map((t) => ("+-&~".includes(t[0]) ? t[0] : "")).pop();

  // withTerm returns a query with a sign at a name, or, without one, no such term.
  function withTerm(query, name, sign) {
    const rest = termsOf(query).filter((t) => bare(t) !== name);
    if (sign) rest.push(sign + name);
    return rest.join(" ");
  }

  // withSetting returns a query that sets something of a pass.
  function withSetting(query, name, key, value) {
    const rest = termsOf(query).filter((t) => !t.replace(/^[+\-&~]/, "").startsWith(`${name}{${key}=`));
    return [...rest, `${name}{${key}=${value}}`].join(" ");
  }

  // withMode returns a query that begins with a mode.
  const withMode = (query, mode) => [mode, ...termsOf(query).filter((t) => !modes.includes(bare(t)))].join(" ");

  // modeBox chooses a mode.
  function modeBox(input) {
    const current = termsOf(input.value).map(bare).find((t) => modes.includes(t)) ?? "";
    const box = el("select", { name: "mode", "aria-label": "Mode", onchange: () => set(input, withMode(input.value, box.value)) },
      current ? null : el("option", { value: "" }, "–"), modes.map((m) => el("option", { value: m, selected: m === current }, m)));
    return box;
  }

  // set changes the query, as if it had been typed.
  function set(input, query) {
    input.value = query;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }

  // listPasses fills a box with what a query selects.
  async function listPasses(app, box, input) {
    const query = input.value.trim(), wanted = (box.wanted = Symbol(query));
    let list;
    try {
      list = (app.passLists ??= new Map()).get(query) ?? (await view.request("passes", { query })).passes ?? [];
    } catch (err) {
      if (box.wanted === wanted) box.replaceChildren(el("legend", null, "Passes"), el("p.error", null, err.message));
      return;
    }
    app.passLists.set(query, list);
    if (box.wanted !== wanted) return;
    const rows = el("div.rows"), choices = choicesOf(list);
    const filter = el("input", { type: "search", placeholder: "filter", "aria-label": "Filter the passes", value: box.filter, oninput: () => show() });
    // Those that are selected or left out by name are listed; a filter finds the others as well.
    const show = () => {
      const text = (box.filter = filter.value.trim());
      const some = choices.filter((p) => (text ? p.name.includes(text) || p.tags.some((t) => t.includes(text)) : p.on || signOf(query, p.name)));
      rows.replaceChildren(...some.slice(0, 800).map((p) => tick(input, p)));
    };
    show();
    box.replaceChildren(el("legend", null, "Passes"), filter, rows, tagBox(input, choices), settingBox(input, choices) ?? "");
  }

  function tick(input, p) {
    const box = el("input", { type: "checkbox", name: p.name, checked: p.on, onchange: () => {
      const without = withTerm(input.value, p.name, ""), left = signOf(input.value, p.name) === "-";
      set(input, box.checked ? (left ? without : withTerm(input.value, p.name, "+")) : withTerm(input.value, p.name, "-"));
    } });
    return el("label", { title: [p.doc, ...p.paths, p.tags.join(" ")].filter(Boolean).join("\n") }, box, " ", p.rule ? p.name : el("b", null, p.name));
  }

  // choicesOf returns what can be ticked: passes, then rules, each name once, since a query knows them by
  // their names.
  function choicesOf(list) {
    const byName = new Map();
    for (const p of [...list.filter((p) => !p.rule), ...list.filter((p) => p.rule)]) {
      if (!byName.has(p.name)) byName.set(p.name, { ...p, on: false, paths: [], tags: p.tags ?? [], settings: p.settings ?? [] });
      const c = byName.get(p.name);
      c.paths.push(p.path || "");
      c.on ||= p.on;
    }
    return [...byName.values()];
  }

  // tagBox lists the tags, each to be included, left out, or neither.
  function tagBox(input, choices) {
    const counts = new Map();
    for (const p of choices) for (const t of p.tags) if (!modes.includes(t)) counts.set(t, (counts.get(t) ?? 0) + 1);
    const button = (tag) => {
      const sign = signOf(input.value, tag) ?? "", next = { "": "+", "+": "-" }[sign] ?? "";
      return el("button.tag", { type: "button", "data-tag": tag, "aria-pressed": sign !== "", title: `${counts.get(tag)} entries; ${next ? `make it ${next}${tag}` : "take it out of the query"}`,
        onclick: () => set(input, withTerm(input.value, tag, next)) }, sign + tag);
    };
    return el("details", null, el("summary", null, "Tags"), el("p.tags", null, [...counts.keys()].sort().map((t) => [button(t), " "])));
  }

  // settingBox lists the settings of passes that are selected.
  function settingBox(input, choices) {
    const rows = choices.filter((p) => p.on).flatMap((p) => p.settings.map(([key, value]) => {
      const own = termsOf(input.value).map((t) => t.replace(/^[+\-&~]/, "")).find((t) => t.startsWith(`${p.name}{${key}=`));
      const box = el("input", { type: "text", value: own ? own.slice(p.name.length + key.length + 2, -1) : value, "data-setting": `${p.name}.${key}`,
        onchange: () => set(input, withSetting(input.value, p.name, key, box.value.trim())) });
      return el("label.setting", null, el("span", null, `${p.name} ${key}`), box);
    }));
    return rows.length ? el("details", null, el("summary", null, "Settings"), rows) : null;
  }

  Object.assign(view, { modeBox, listPasses });
})((globalThis.nnopt ??= {}));
