// The keys, in one table that both works and is shown.
(function (view) {
  "use strict";

  const { el, $ } = view;

  const keys = [
    ["ArrowRight", "→", "next pass", (app) => app.go(app.nextStop(1))],
    ["ArrowLeft", "←", "previous pass", (app) => app.go(app.nextStop(-1))],
    ["shift+ArrowRight", "shift →", "next rewrite", (app) => app.nextFine(1)],
    ["shift+ArrowLeft", "shift ←", "previous rewrite", (app) => app.nextFine(-1)],
    ["n", "n", "next pass that changed something", (app) => app.go(app.nextBusy(1))],
    ["p", "p", "previous pass that changed something", (app) => app.go(app.nextBusy(-1))],
    ["Home", "home", "the graph as it came", (app) => app.go(0)],
    ["End", "end", "the final graph", (app) => app.go(app.run.stops.length - 1)],
    ["c", "c", "next change in this step", (app) => app.nextChange(1)],
    ["C", "C", "previous change in this step", (app) => app.nextChange(-1)],
    ["ArrowUp", "↑", "to what the chosen apply reads", (app) => app.walk(-1)],
    ["ArrowDown", "↓", "to what reads it", (app) => app.walk(1)],
    ["[", "[", "to the left in its layer", (app) => app.aside(-1)],
    ["]", "]", "to the right in its layer", (app) => app.aside(1)],
    ["f", "f", "follow its value through all steps", (app) => app.followChosen()],
    ["w", "w", "why rules did not fire there", (app) => app.why()],
    ["b", "b", "two steps beside each other", (app) => app.toggleBeside()],
    ["/", "/", "search", (app) => app.search()],
    ["+", "+", "nearer", (app) => app.picture.camera.zoom(1.25)],
    ["-", "−", "farther", (app) => app.picture.camera.zoom(0.8)],
    ["0", "0", "the whole graph", (app) => app.picture.fit(true)],
    ["d", "d", "open or close the panel below", (app) => app.toggleDock()],
    ["t", "t", "light or dark", () => view.nextTheme()],
    ["?", "?", "these keys", () => showKeys()],
    ["Escape", "esc", "choose nothing", (app) => app.escape()],
  ];
  const byKey = new Map(keys.map((k) => [k[0], k[3]]));
  byKey.set("=", byKey.get("+"));

  function startKeys(app) {
    document.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || $("keys").open) return;
      const typing = e.target.closest?.("input:not([type=checkbox], [type=range]), textarea, select");
      if (typing && e.key !== "Escape") return;
      const arrows = /^Arrow/.test(e.key);
      if (arrows && e.target.closest?.("[role=tablist], input[type=range]")) return;
      if ((e.key === "ArrowUp" || e.key === "ArrowDown") && !e.target.closest?.("#graph") && e.target !== document.body) return;
      const act = byKey.get((e.shiftKey && arrows ? "shift+" : "") + e.key);
      if (!act || (!app.run.hasGraph && !["t", "?", "/", "Escape"].includes(e.key))) return;
      e.preventDefault();
      act(app);
    });
    // A list of buttons is walked with up and down.
    for (const list of [$("timeline"), $("panels")]) {
      list.addEventListener("keydown", (e) => {
        const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0, li = e.target.closest("li");
        if (!step || !li) return;
        let next = li;
        do next = step > 0 ? next.nextElementSibling : next.previousElementSibling;
        while (next && !next.offsetHeight);
        next?.querySelector("button")?.focus();
        e.preventDefault();
        e.stopPropagation();
      });
    }
  }

  function showKeys() {
    const dialog = $("keys");
    if (!dialog.firstChild) {
      dialog.append(
        el("h2", { id: "keysTitle" }, "Keys"),
        el("dl", null, keys.map(([, sign, text]) => el("div", null, el("dt", null, el("kbd", null, sign)), el("dd", null, text)))),
        el("p.faint", null, "Drag to move, wheel to scroll, ctrl and wheel or two fingers to zoom, double click to come nearer."),
        el("form", { method: "dialog" }, el("button.main", { autofocus: true }, "Close")));
      dialog.addEventListener("click", (e) => e.target === dialog && dialog.close());
    }
    dialog.showModal();
  }

  Object.assign(view, { startKeys, showKeys });
})((globalThis.nnopt ??= {}));
