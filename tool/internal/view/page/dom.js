// Small helpers for elements. Text only ever goes in as text, so that no name can become markup.
(function (view) {
  "use strict";

  const svgSpace = "http://www.w3.org/2000/svg";

  // el makes an element: el("button.small", {title: "…", onclick: f}, "text", child…). Attributes that are
  // null or false are left out.
  function el(spec, attributes, ...children) {
    const [tag, ...classes] = spec.split(".");
    return fill(document.createElement(tag), classes, attributes, children);
  }

  // svg makes an element of SVG.
  function svg(spec, attributes, ...children) {
    const [tag, ...classes] = spec.split(".");
    return fill(document.createElementNS(svgSpace, tag), classes, attributes, children);
  }

  function fill(e, classes, attributes, children) {
    if (classes.length) e.setAttribute("class", classes.join(" "));
    if (e.localName === "pre") e.tabIndex = 0; // it may be wider than its place, and keys have to reach it
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") e.addEventListener(name.slice(2), value);
      else if (name === "value") e.value = value;
      else e.setAttribute(name, value === true ? "" : value);
    }
    e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
    return e;
  }

  const $ = (id) => document.getElementById(id);

  // bar draws a part of a whole as a stretch of a track. The policy of the page forbids style attributes, so
  // the stretch is set by properties.
  function bar(part, whole, from = 0) {
    const stretch = el("i");
    stretch.style.left = (100 * (from || 0)) / whole + "%";
    stretch.style.width = (100 * (part || 0)) / whole + "%";
    return el("span.track", null, stretch);
  }

  // pairs lists names, each with its value.
  const pairs = (list) => el("dl.pairs", null, list.map(([name, value]) => [el("dt", null, name), el("dd", null, value)]));

  // duration writes nanoseconds.
  function duration(ns) {
    if (!(ns > 0)) return ""; // the clock of a browser counts in tenths of a millisecond
    const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
    const [size, name] = units.find(([s]) => ns >= s) || units[3];
    const x = ns / size;
    return (x < 10 && size > 1 ? x.toFixed(1) : Math.round(x)) + " " + name;
  }

  // bytes writes a number of bytes.
  function bytes(n) {
    if (n === undefined || n === null) return "";
    const units = ["B", "kB", "MB", "GB", "TB"];
    let i = 0;
    for (; n >= 1000 && i < 4; i++) n /= 1000;
    return (i && n < 100 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
  }

  const count = (n, one, many = one + "s") => n.toLocaleString("en") + " " + (n === 1 ? one : many);

  // remembered reads and writes a setting; pages on disk may have no storage.
  const remembered = {
    get(key) {
      try {
        return localStorage.getItem("nnopt." + key);
      } catch {
        return null;
      }
    },
    set(key, value) {
      try {
        localStorage.setItem("nnopt." + key, value);
      } catch {
        // Nothing is lost but the setting.
      }
    },
  };

  Object.assign(view, { el, svg, $, bar, pairs, duration, bytes, count, remembered });
})((globalThis.nnopt ??= {}));
