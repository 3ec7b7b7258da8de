// Light, dark, or as the system has it.
(function (view) {
  "use strict";

  const { $, remembered } = view;
  const themes = ["auto", "light", "dark"], signs = { auto: "◐", light: "☀", dark: "☾" };

  function setTheme(theme) {
    const t = themes.includes(theme) ? theme : "auto";
    if (t === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = t;
    $("theme").textContent = signs[t];
    $("theme").title = `Colours: ${t === "auto" ? "as the system" : t} (t)`;
    $("theme").dataset.now = t;
    remembered.set("theme", t);
    view.themed?.();
  }

  function nextTheme() {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const order = dark ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    setTheme(order[(order.indexOf($("theme").dataset.now) + 1) % 3]);
  }

  Object.assign(view, { setTheme, nextTheme });
})((globalThis.nnopt ??= {}));
