// Errors as the command line has them, with the place marked in the field that they are about.
(function (view) {
  "use strict";

  const { el } = view;

  // places say by its text which field an error is about, and where: its line and its column, from 1, or a
  // part of the text.
  const places = [
    [/^--vars: column (\d+)/, (m) => ({ field: "variables", column: Number(m[1]) })],
    [/^--grad: .*?(?:variable|respect to) (\w+)/, (m) => ({ field: "grad", part: m[1] })],
    [/^--(vars|grad)\b/, (m) => ({ field: m[1] === "vars" ? "variables" : "grad" })],
    [/^--\w+/, () => ({ field: "flags" })],
    [/\bquery "[^\n]*": column (\d+)/, (m) => ({ field: "query", column: Number(m[1]) })],
    [/\bquery [^\n]*unknown \w+ [+&~-]?([\w.]+)/, (m) => ({ field: "query", part: m[1] })],
    [/(?:^|\s)(?:rules|argument):(\d+):[^\n]*pattern "([^\n]*)": column (\d+)/, (m) => ({ field: "rules", line: Number(m[1]), part: m[2], column: Number(m[3]) })],
    [/(?:^|\s)(?:rules|argument):(\d+): /, (m) => ({ field: "rules", line: Number(m[1]) })],
    [/pattern "([^\n]*)": column (\d+)/, (m) => ({ field: "rules", part: m[1], column: Number(m[2]) })],
  ];

  // placeOf returns the field that an error is about, and the part of its text, or null.
  function placeOf(app, err) {
    let at = err.column ? { field: "expr", line: err.line, column: err.column } : null;
    for (let i = 0; !at && i < places.length; i++) {
      const m = places[i][0].exec(err.message);
      if (m) at = places[i][1](m);
    }
    const field = at && (app.form.elements[at.field] ?? view.rulesElements(app)[at.field]);
    if (!field) return null;
    const text = field.value;
    let from = at.line ? text.split("\n").slice(0, at.line - 1).reduce((n, l) => n + l.length + 1, 0) : 0;
    // A pattern of several lines is named as one, so it may not be found. Then there is its line.
    const part = at.part ? text.indexOf(at.part, from) : -1, found = part >= 0;
    if (found) from = part;
    let to = from + (found ? at.part.length : at.line ? text.slice(from).split("\n")[0].length : 0);
    if (at.column && (found || !at.part)) {
      // Columns are in bytes.
      from += new TextDecoder().decode(new TextEncoder().encode(text.slice(from)).slice(0, at.column - 1)).length;
      to = from + 1;
    }
    return { field, from: Math.min(from, text.length), to: Math.min(to, text.length) };
  }

  // faults shows an error. The place that it is about is selected in its field, and marked below the text.
  function faults(app, err) {
    const parts = [el("p.error", null, (err.line && !err.column ? `line ${err.line}: ` : "") + err.message)], at = placeOf(app, err);
    for (const f of document.querySelectorAll("[aria-invalid]")) f.removeAttribute("aria-invalid");
    if (!at) return parts;
    if (at.field.form === app.rulesForm) app.openTab("live");
    const { field, from, to } = at, begin = field.value.lastIndexOf("\n", from - 1) + 1, line = field.value.slice(begin).split("\n")[0];
    if (line.trim()) {
      const left = Math.max(0, from - begin - 60), width = Math.max(1, Math.min(to - from, line.length - (from - begin)));
      parts.push(el("pre.place", null, line.slice(left, left + 120) + "\n" + " ".repeat(from - begin - left) + "^".repeat(Math.min(width, 120))));
    }
    field.setAttribute("aria-invalid", "true");
    field.addEventListener("input", () => field.removeAttribute("aria-invalid"), { once: true });
    if (field.offsetParent) {
      field.focus();
      field.setSelectionRange(from, to);
    }
    return parts;
  }

  Object.assign(view, { faults });
})((globalThis.nnopt ??= {}));
