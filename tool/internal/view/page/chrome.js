// What surrounds the graph: buttons, the tabs below, and the views of a narrow window.
(function (view) {
  "use strict";

  // What is in a tab is made when it is opened: it may be thousands of rows.
  const tabs = [
    ["commands", "Commands", (app) => view.commandsTab(app), (app) => view.hasCommands(app)],
    ["ops", "Ops", (app) => view.opsTab(app), (app) => app.run.hasGraph],
    ["rules", "Rules", (app) => view.rulesTab(app), (app) => app.run.passes.some((p) => p.rules?.length)],
    ["report", "Report", (app) => view.reportTab(app), () => true],
    ["live", "Choose passes, write rules", (app) => view.liveTab(app), (app) => app.live],
  ];
  const views = [["passes", "Passes"], ["graph", "Graph"], ["detail", "Details"], ["dock", "More"]];

  function startChrome(app) {
    const { $, el } = view, { picture } = app;
    const on = (id, f) => $(id).addEventListener("click", f);
    on("previous", () => app.go(app.nextStop(-1)));
    on("next", () => app.go(app.nextStop(1)));
    on("theme", () => view.nextTheme());
    on("help", () => view.showKeys());
    on("zoomIn", () => picture.camera.zoom(1.25));
    on("zoomOut", () => picture.camera.zoom(0.8));
    on("whole", () => picture.fit(true));
    on("nextChange", () => app.nextChange(1));
    on("closer", () => app.toggleDock());
    on("besideButton", () => app.toggleBeside());
    on("busy", () => $("passes").classList.toggle("busy", $("busy").checked));
    $("fold").addEventListener("change", () => app.run.hasGraph && app.foldBy($("fold").value));
    addEventListener("beforeprint", () => {
      picture.drawAll();
      const box = $("picture").querySelector(".scene").getBBox();
      $("picture").setAttribute("viewBox", `${box.x - 20} ${box.y - 20} ${box.width + 40} ${box.height + 40}`);
      $("picture").querySelector(".scene").removeAttribute("transform");
    });
    addEventListener("afterprint", () => {
      $("picture").removeAttribute("viewBox");
      picture.render();
    });
    $("views").replaceChildren(...views.map(([id, text]) =>
      el("button", { "data-to": id, "aria-pressed": String(id === "graph"), onclick: () => app.showView(id) }, text)));
  }

  // tabMethods are the methods of the page that open tabs and views.
  const tabMethods = {
    // drawTabs makes the tabs that the recording has something for.
    drawTabs(wanted) {
      const { $, el } = view;
      const before = document.body.classList.contains("docked") ? this.tab : "";
      this.panels = new Map();
      for (const [id, title, make, has] of tabs) {
        if (!has(this)) continue;
        const tab = el("button", { role: "tab", id: "tab-" + id, "aria-controls": "panel-" + id, onclick: () => (this.tab === id && wide() ? this.toggleDock() : this.openTab(id)) }, title);
        this.panels.set(id, { tab, make, panel: el("div", { role: "tabpanel", tabindex: 0, id: "panel-" + id, "aria-labelledby": "tab-" + id }) });
      }
      const list = [...this.panels.values()];
      $("tabs").replaceChildren(...list.map((p) => p.tab));
      $("panels").replaceChildren(...list.map((p) => p.panel));
      $("tabs").onkeydown = (e) => {
        const i = list.findIndex((p) => p.tab === document.activeElement), by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
        if (i >= 0 && by) list[(i + by + list.length) % list.length].tab.focus();
      };
      this.tab = "";
      // A tab that is open stays open for another run.
      if (this.panels.has(wanted || before)) return this.openTab(wanted || before, false);
      document.body.classList.remove("docked");
      if (!this.run.hasGraph) this.openTab(this.panels.has("report") ? "report" : [...this.panels.keys()][0]);
      else this.chooseTab([...this.panels.keys()][0]);
    },

    chooseTab(id) {
      this.tab = id;
      for (const [name, { tab, panel }] of this.panels) {
        tab.setAttribute("aria-selected", String(name === id));
        panel.hidden = name !== id;
      }
    },

    // openTab opens a tab, and the view that it is in unless it is to stay as it is.
    openTab(id, show = true) {
      if (!this.panels.has(id)) return;
      this.chooseTab(id);
      document.body.classList.add("docked");
      this.fillTab();
      if (show && !wide()) this.showView("dock");
    },

    // fillTab makes what is in the tab that is open.
    fillTab() {
      const p = this.panels.get(this.tab);
      if (!p.panel.firstChild) p.panel.append(p.make(this));
      if (this.tab === "ops") this.drawOps();
      if (this.diff) view.markCommands(this);
    },

    toggleDock() {
      if (document.body.classList.toggle("docked")) this.fillTab();
    },

    // showView shows one of the views of a narrow window.
    showView(id) {
      document.body.dataset.view = id;
      for (const b of view.$("views").children) b.setAttribute("aria-pressed", String(b.dataset.to === id));
      this.picture.camera.forgetSize();
      if (id === "dock") this.fillTab();
      if (id === "graph" && this.picture.graph) this.picture.render();
    },

    showGraph() {
      if (!wide()) this.showView("graph");
    },
  };

  const wide = () => matchMedia("(min-width: 861px)").matches;

  Object.assign(view, { startChrome, tabMethods });
})((globalThis.nnopt ??= {}));
