// Two steps beside each other. Both pictures are that of all that is there before or after, so what they have
// in common is at the same place: the left one leaves out what is new, the right one what has gone.
(function (view) {
  "use strict";

  const besideMethods = {
    // toggleBeside opens or closes the second picture.
    toggleBeside() {
      const on = document.body.classList.toggle("beside");
      view.$("besideButton").setAttribute("aria-pressed", String(on));
      if (on && !this.second) {
        this.second = new view.GraphView(view.$("second"), this);
        link(this.picture.camera, this.second.camera);
        link(this.second.camera, this.picture.camera);
      }
      this.besideFrom = 0;
      this.picture.camera.forgetSize();
      this.second.camera.forgetSize();
      if (on) this.openSecond();
      this.draw();
      this.picture.fit(true);
    },

    // openSecond shows this run in the second picture, with the places that the first one gives.
    openSecond() {
      this.second.open(this.picture.run);
      Object.assign(this.second, { plan: this.picture.plan, layout: this.picture.layout });
    },

    // drawBeside draws the second picture, and the steps that can be on the left.
    drawBeside() {
      if (!document.body.classList.contains("beside")) return;
      const { stops, passes } = this.run;
      if (this.second.run !== this.picture.run) {
        this.openSecond();
        this.besideFrom = 0;
      }
      const label = (s, i) => `${i}  ${passes[s.pass]?.name ?? "start"}`;
      const box = view.el("select", { "aria-label": "The step on the left", onchange: () => {
        this.besideFrom = Number(box.value);
        this.draw();
      } }, stops.map((s, i) => (i === 0 || s.from !== s.to ? view.el("option", { value: i, selected: i === this.besideFrom }, label(s, i)) : null)));
      view.$("besideFrom").replaceChildren(box, " beside ", label(stops[this.stop], this.stop));
      const { x, y, k } = this.picture.camera;
      this.second.show(this.picture.diff, this.marks());
      this.second.camera.set(x, y, k);
    },

    // besideDiff returns what both pictures draw.
    besideDiff() {
      const { stops } = this.run, a = stops[this.besideFrom]?.to ?? 0, b = stops[this.stop].to;
      return this.run.diff(Math.min(a, b), Math.max(a, b));
    },
  };

  // link makes a camera follow another.
  function link(camera, other) {
    const changed = camera.changed;
    camera.changed = () => {
      changed();
      if (!document.body.classList.contains("beside") || (other.x === camera.x && other.y === camera.y && other.k === camera.k)) return;
      other.set(camera.x, camera.y, camera.k);
    };
  }

  Object.assign(view, { besideMethods });
})((globalThis.nnopt ??= {}));
