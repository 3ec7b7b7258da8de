// The page: one object holds what is chosen, and every part draws itself from it.
(function (view) {
  "use strict";

  class App {
    constructor() {
      const { $ } = view;
      this.picture = new view.GraphView($("picture"), this);
      this.map = new view.GraphMap($("map"), this.picture);
      this.run = null;
      this.tab = "";
    }

    // open shows a recording.
    open(data, tab = "") {
      performance.mark("nnopt:open");
      this.run = new view.Run(data);
      this.live = data.live;
      this.answers = new Map(); // position/apply: what the optimizer said
      this.question = {}; // what asks about this run; the program knows the one that it began with
      Object.assign(this, { stop: 0, fine: -1, group: -1, node: -1, value: -1, command: null, followedLine: null, found: new Set(), followedValues: new Set() });
      const { $, el } = view, { run } = this;
      // Where it can be typed, the form has it.
      $("title").textContent = (!data.live && data.title) || "nnopt";
      $("subtitle").textContent = data.live ? "what an optimizer does to a graph, step by step" : data.subject && data.subject !== data.title ? view.cut(data.subject, 400) : "";
      $("subtitle").title = view.cut(data.subject || "", 2000);
      document.title = (data.title ? data.title + " – " : "") + "nnopt view";
      document.body.classList.toggle("graphless", !run.hasGraph);
      this.folding = null;
      $("fold").value = "";
      this.picture.open(run);
      view.drawTimeline(this);
      view.fillCompose(this);
      this.drawTabs(tab);
      this.listOps?.();
      $("ruleNames")?.remove();
      const names = new Set(run.passes.flatMap((p) => (p.rules || []).map((r) => r.name)));
      if (this.live) document.body.append(el("datalist", { id: "ruleNames" }, [...names].map((n) => el("option", { value: n }))));
      if (run.hasGraph) {
        this.draw();
        this.picture.fit();
        this.picture.render();
        this.prepare(1);
      }
      measured("nnopt:open");
    }

    // draw shows the step that is chosen.
    draw() {
      const s = this.shown();
      this.diff = this.fine >= 0 ? this.run.diff(this.fine, this.fine + 1) : this.run.diff(s.from, s.to);
      if (document.body.classList.contains("beside")) this.diff = this.besideDiff();
      this.updateFollowed();
      this.picture.show(this.drawn(this.diff), this.marks());
      this.drawBeside();
      view.markTimeline(this);
      view.drawStep(this);
      view.drawDetail(this);
      view.markCommands(this);
      if (this.tab === "ops" && document.body.classList.contains("docked")) this.drawOps();
      const pass = this.run.passes[s.pass];
      view.$("where").textContent = `${this.stop} / ${this.run.stops.length - 1}  ${pass ? pass.name : "start"}` + (this.fine >= 0 ? ` · rewrite ${this.fine - s.from + 1}` : "");
      this.remember();
    }

    // shown returns what is on screen: a stop, or all stops of a pass that runs others.
    shown() {
      const s = this.run.stops[this.stop];
      if (this.group < 0) return s;
      const [from, to] = this.run.passes[this.group].steps;
      return { pass: this.group, from, to };
    }

    // passesAround returns the pass on screen and those that run it.
    passesAround() {
      const around = new Set();
      for (let p = this.shown().pass; p >= 0; p = this.run.passes[p].parent ?? -1) around.add(p);
      return around;
    }

    marks() {
      const { followedLine, run } = this, followed = new Set(), values = new Set();
      if (followedLine) {
        for (const p of [this.diff.from, this.diff.to]) {
          const v = run.valueAt(followedLine, p);
          values.add(v);
          if (run.owner[v] >= 0) followed.add(run.owner[v]);
        }
      }
      return { node: this.folding && this.node >= 0 ? this.folding.drawnAs(this.node) : this.node, values, followed, found: this.found };
    }

    // go shows a stop.
    go(stop) {
      this.group = -1;
      this.arrive(Math.max(0, Math.min(this.run.stops.length - 1, stop)), -1);
    }

    // goPass shows the stop of a pass, or for one that runs others what all of them did together.
    goPass(pass) {
      const { stops, passes } = this.run, own = stops.findIndex((s) => s.pass === pass);
      const parent = passes.some((p) => p.parent === pass) && passes[pass].steps;
      if (!parent) return this.go(own >= 0 ? own : this.stop);
      this.group = pass;
      const last = stops.findLastIndex((s) => s.pass >= 0 && (s.pass === pass || this.within(s.pass, pass)));
      this.arrive(Math.max(0, last), -1);
    }

    within(pass, around) {
      for (let p = pass; p >= 0; p = this.run.passes[p].parent ?? -1) if (p === around) return true;
      return false;
    }

    // goFine shows one rewrite of what is on screen, or again all of it.
    goFine(step) {
      const s = this.shown();
      this.arrive(this.stop, step >= s.from && step < s.to ? step : -1);
    }

    // goStep shows one rewrite, wherever it is.
    goStep(step) {
      const s = this.shown();
      if (this.group >= 0 && step >= s.from && step < s.to) return this.goFine(step);
      this.group = -1;
      this.arrive(this.run.stopOf(step), step);
    }

    // arrive draws a step. What changed comes into view, unless something is followed or chosen.
    arrive(stop, fine) {
      if (!this.run.hasGraph) return;
      performance.mark("nnopt:step");
      const before = this.stop;
      this.stop = stop;
      this.fine = fine;
      this.draw();
      this.lookAt();
      measured("nnopt:step");
      this.prepare(stop < before ? -1 : 1);
    }

    // prepare lays out, when there is time, what the next step in a direction shows.
    prepare(by) {
      const next = this.run.stops[this.nextBusy(by)];
      if (next && next.from !== next.to) this.picture.prepare(() => this.drawn(this.run.diff(next.from, next.to)));
    }

    lookAt() {
      const { picture } = this;
      const followed = [...this.picture.marks.followed].filter((n) => this.diff.change[n]);
      if (followed.length) picture.reveal(followed[followed.length - 1]);
      else if (this.node >= 0 && this.diff.change[this.node]) picture.reveal(this.node);
      else if (!picture.changedInView()) {
        const [first] = picture.changes();
        if (first !== undefined) picture.reveal(first);
        else if (this.outOfView()) picture.fit();
      }
    }

    outOfView() {
      return !this.picture.visible(this.picture.camera.window()).length;
    }

    nextStop(by) {
      const busy = view.$("busy").checked;
      return busy ? this.nextBusy(by) : this.stop + by;
    }

    nextBusy(by) {
      const { stops } = this.run;
      let i = this.stop + by;
      while (i > 0 && i < stops.length - 1 && stops[i].from === stops[i].to) i += by;
      return i;
    }

    nextFine(by) {
      const { steps } = this.run, s = this.shown();
      const at = this.fine >= 0 ? this.fine + by : by > 0 ? s.from : s.to - 1;
      const next = this.fine < 0 && s.from === s.to ? (by > 0 ? s.from : s.from - 1) : at;
      if (next >= 0 && next < steps.length) this.goStep(next);
    }

    nextOfRule(name, stop) {
      const { steps } = this.run;
      for (let i = 1, n = stop.to - stop.from; i <= n; i++) {
        const k = stop.from + ((Math.max(this.fine, stop.from - 1) - stop.from + i) % n + n) % n;
        if (steps[k].rule === name) return this.goStep(k);
      }
    }

    // firstOfRule shows where a rule fired in a pass, and the next place if one is on screen.
    firstOfRule(name, pass) {
      const { steps } = this.run, fits = (s) => s.rule === name && (pass === undefined || s.pass === pass);
      let k = steps.findIndex((s, i) => i > this.fine && this.fine >= 0 && fits(s));
      if (k < 0) k = steps.findIndex(fits);
      if (k < 0) k = steps.findIndex((s) => s.rule === name);
      if (k < 0) return pass === undefined ? undefined : this.goPass(pass);
      this.goStep(k);
      this.showGraph();
    }

    nextChange(by) {
      const list = this.picture.changes();
      if (!list.length) return;
      const i = list.indexOf(this.node);
      this.select(list[i < 0 ? (by > 0 ? 0 : list.length - 1) : (i + by + list.length) % list.length], true);
    }

    // select chooses an apply, or nothing with -1, and brings it into view if asked to.
    select(n, reveal = false) {
      this.node = n;
      this.value = -1;
      this.command = null;
      if (n >= 0 && reveal && !this.diff.change[n]) this.goWhere(n);
      this.chosen(reveal);
    }

    chosen(reveal) {
      this.picture.remark(this.marks());
      if (document.body.classList.contains("beside")) this.second.remark(this.marks());
      view.speak(this);
      if (this.node >= 0) {
        if (reveal) {
          this.picture.reveal(this.node);
          this.picture.render();
        }
        if (reveal || document.activeElement?.closest?.("#picture")) this.picture.focus(this.node);
      }
      view.drawDetail(this);
      view.markCommands(this);
      this.remember();
    }

    // goWhere goes to a step in which an apply is drawn.
    goWhere(n) {
      const { run } = this, born = run.bornAt.get(n);
      const stop = born === undefined ? 0 : run.stopOf(born);
      Object.assign(this, { stop, fine: -1, group: -1 });
      this.draw();
      if (!this.diff.change[n] && born !== undefined) {
        this.fine = born;
        this.draw();
      }
    }

    // selectValue chooses the apply that makes a value, or a value that none makes.
    selectValue(v, reveal = false) {
      const owner = this.run.owner[v];
      if (owner >= 0) return this.select(owner, reveal);
      this.node = -1;
      this.value = v;
      this.chosen(false);
    }

    // follow follows a value from this step both ways; -1 ends that.
    follow(v) {
      this.followedLine = v >= 0 ? this.run.follow(v, this.diff.to) : null;
      this.updateFollowed();
      this.picture.remark(this.marks());
      view.drawDetail(this);
      this.remember();
    }

    updateFollowed() {
      this.followedValues = new Set((this.followedLine || []).map((e) => e.value));
    }

    followChosen() {
      if (this.followedLine) return this.follow(-1);
      const v = this.node >= 0 ? this.run.nodes[this.node].out?.[0] : this.value;
      if (v >= 0) this.follow(v);
    }

    escape() {
      if (this.run.hasGraph) this.select(-1);
      document.activeElement?.blur();
    }

    search() {
      this.searchedAt = performance.now();
      view.$("search").focus();
    }

    setFound(nodes) {
      this.found = nodes;
      if (this.run.hasGraph) this.picture.remark(this.marks());
    }

    rendered(picture) {
      if (picture === this.picture) this.map.draw();
    }

    // remember keeps the place in the address, so that a reload comes back to it.
    remember() {
      const parts = [`step=${this.stop}`];
      if (this.group >= 0) parts.push(`pass=${this.group}`);
      if (this.fine >= 0) parts.push(`rewrite=${this.fine}`);
      if (this.node >= 0) parts.push(`node=${this.node}`);
      for (const [key, text] of Object.entries(this.shared ?? {})) if (text) parts.push(`${key}=${encodeURIComponent(text)}`);
      try {
        history.replaceState(null, "", "#" + parts.join("&"));
      } catch {
        // Some places forbid it; then a reload starts anew.
      }
    }

    // visit makes what is on screen one step back in the browser.
    visit() {
      try {
        history.pushState(null, "", location.href);
      } catch {
        // As above.
      }
    }

    // arriveAt goes where an address leads that the browser goes to, or that was typed.
    async arriveAt(hash) {
      const shared = view.sharedIn(hash), same = JSON.stringify(shared) === JSON.stringify(this.shared ?? null);
      if (this.live && !same) {
        if (shared) await view.ask(this, shared, { back: true });
        else {
          this.shared = null;
          this.open(this.first);
        }
      }
      this.restore(hash);
    }

    // restore goes to the place in the address.
    restore(hash) {
      if (!this.run.hasGraph) return;
      const place = new URLSearchParams(hash.slice(1));
      const number = (key) => (/^\d+$/.test(place.get(key) ?? "") ? Number(place.get(key)) : -1);
      const stop = number("step"), fine = number("rewrite"), node = number("node"), group = number("pass");
      if (stop > 0 && stop < this.run.stops.length) this.go(stop);
      if (group >= 0 && group < this.run.passes.length) this.goPass(group);
      if (fine >= 0 && fine < this.run.steps.length) this.goStep(fine);
      if (node >= 0 && this.diff.change[node]) this.select(node, true);
    }
  }

  Object.assign(App.prototype, view.tabMethods, view.choiceMethods, view.besideMethods, view.groupMethods);

  // measured notes how long it took until the picture stood on screen, in the timeline of the browser.
  function measured(name) {
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => performance.measure(name, name);
      channel.port2.postMessage(0);
    });
  }

  async function start() {
    view.setTheme(view.remembered.get("theme"));
    const app = (view.app = new App());
    view.themed = () => app.picture.graph && app.map.draw();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", view.themed);
    view.startChrome(app);
    let data;
    try {
      data = await view.read();
    } catch (err) {
      view.$("detail").replaceChildren(view.el("p.error", null, "The recording in this page can't be read: " + err.message));
      return;
    }
    if (!data) {
      view.$("detail").replaceChildren(view.el("p.error", null, "This page holds no recording. Make one with nnopt view."));
      return;
    }
    const place = location.hash, shared = data.live && view.sharedIn(place);
    app.first = data;
    app.open(data);
    addEventListener("popstate", () => app.arriveAt(location.hash));
    app.restore(place);
    view.startSearch(app);
    view.startKeys(app);
    view.startFiles(app);
    requestAnimationFrame(() => performance.measure("nnopt:first", { start: 0 }));
    document.documentElement.dataset.ready = "";
    if (shared) {
      await view.ask(app, shared, { back: true });
      app.restore(place);
    }
  }

  addEventListener("DOMContentLoaded", start);
})((globalThis.nnopt ??= {}));
