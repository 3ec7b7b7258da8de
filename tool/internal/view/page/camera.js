// The camera over a picture: dragging, wheel, pinching and buttons move and zoom it.
(function (view) {
  "use strict";

  const least = 0.02, most = 3;

  // A Camera maps the picture to the screen: screen = k * picture + (x, y). It calls changed after each move.
  class Camera {
    constructor(element, changed) {
      this.element = element;
      this.changed = changed;
      this.x = this.y = 0;
      this.k = 1;
      this.dragged = false; // the last press moved, so its click is none
      this.pointers = new Map();
      element.addEventListener("pointerdown", (e) => this.down(e));
      element.addEventListener("pointermove", (e) => this.move(e));
      for (const end of ["pointerup", "pointercancel"]) element.addEventListener(end, (e) => this.up(e));
      element.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
      element.addEventListener("dblclick", (e) => this.zoomAt(e.shiftKey ? 0.6 : 1.7, e.clientX, e.clientY));
    }

    // size is kept, since asking for it lays out the page.
    get size() {
      return (this.box ??= this.element.getBoundingClientRect());
    }

    forgetSize() {
      this.box = null;
    }

    // window returns the part of the picture that is in view.
    window(margin = 0) {
      const { width, height } = this.size, { x, y, k } = this;
      return {
        left: (-x - margin) / k, right: (width - x + margin) / k,
        top: (-y - margin) / k, bottom: (height - y + margin) / k,
      };
    }

    set(x, y, k) {
      Object.assign(this, { x, y, k: Math.min(most, Math.max(least, k)) });
      this.changed();
    }

    center(x, y, k = this.k) {
      this.set(this.size.width / 2 - k * x, this.size.height / 2 - k * y, k);
    }

    zoom(factor) {
      const { left, top, width, height } = this.size;
      this.zoomAt(factor, left + width / 2, top + height / 2);
    }

    zoomAt(factor, clientX, clientY) {
      this.forgetSize();
      const px = clientX - this.size.left, py = clientY - this.size.top;
      const k = Math.min(most, Math.max(least, this.k * factor));
      this.set(px - ((px - this.x) * k) / this.k, py - ((py - this.y) * k) / this.k, k);
    }

    down(e) {
      if (e.button > 0) return;
      this.forgetSize();
      if (this.pointers.size === 0) this.dragged = false;
      this.pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
      this.pressed = { x: e.clientX, y: e.clientY };
    }

    move(e) {
      const p = this.pointers.get(e.pointerId);
      if (!p) return;
      const dx = e.clientX - p.x, dy = e.clientY - p.y;
      if (!this.dragged && Math.hypot(e.clientX - this.pressed.x, e.clientY - this.pressed.y) < 4) return;
      if (!this.dragged) {
        this.dragged = true;
        this.element.setPointerCapture(e.pointerId);
      }
      if (this.pointers.size === 2) {
        const [a, b] = this.pointers.values(), other = a === p ? b : a;
        const before = Math.hypot(p.x - other.x, p.y - other.y);
        const after = Math.hypot(e.clientX - other.x, e.clientY - other.y);
        if (before > 0) this.zoomAt(after / before, other.x, other.y);
      } else {
        this.set(this.x + dx, this.y + dy, this.k);
      }
      Object.assign(p, { x: e.clientX, y: e.clientY });
    }

    up(e) {
      this.pointers.delete(e.pointerId);
    }

    wheel(e) {
      e.preventDefault();
      const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1;
      if (e.ctrlKey || e.metaKey) {
        this.zoomAt(Math.exp(-e.deltaY * unit * 0.004), e.clientX, e.clientY);
      } else if (e.shiftKey && e.deltaX === 0) {
        this.set(this.x - e.deltaY * unit, this.y, this.k);
      } else {
        this.set(this.x - e.deltaX * unit, this.y - e.deltaY * unit, this.k);
      }
    }
  }

  Object.assign(view, { Camera });
})((globalThis.nnopt ??= {}));
