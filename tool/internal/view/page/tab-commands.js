// Commands before and after side by side, with the memory in use after each.
(function (view) {
  "use strict";

  const { el, svg, bar, bytes, count } = view;

  const hasCommands = (app) => ["before", "after"].some((side) => app.run.data.commands?.[side]?.length);

  function commandsTab(app) {
    const { commands } = app.run.data;
    const peak = Math.max(1, ...["before", "after"].flatMap((s) => (commands[s] || []).map((c) => c.bytes || 0)));
    return el("div.commands", null, ["before", "after"].map((s) => side(app, s, commands[s] || [], peak)));
  }

  function side(app, name, list, peak) {
    const top = Math.max(0, ...list.map((c) => c.bytes || 0));
    const items = list.map((c, i) => el("li", { "data-command": i, "data-side": name },
      el("button", { title: "Show its apply", onclick: () => app.selectCommand(name, i) },
        el("code", null, c.text), bar(c.bytes, peak), el("span.time", null, bytes(c.bytes)))));
    const ol = el("ol", { id: "commands-" + name }, items);
    const label = name === "before" ? "As compiled" : "Optimized";
    return el("section.side", { "aria-label": label },
      el("h3", null, label, el("span.faint", null, ` ${count(list.length, "command")}, at most ${bytes(top)}`)),
      chart(app, name, list, peak), ol);
  }

  // chart draws the memory in use, command by command; both charts have the same scale.
  function chart(app, name, list, peak) {
    const n = Math.max(1, list.length), points = list.map((c, i) => `L${i} ${100 - (98 * (c.bytes || 0)) / peak}H${i + 1}`).join("");
    const hit = (e) => {
      const box = e.currentTarget.getBoundingClientRect();
      app.selectCommand(name, Math.min(n - 1, Math.max(0, Math.floor(((e.clientX - box.left) / box.width) * n))));
    };
    return svg("svg.memory", { viewBox: `0 0 ${n} 100`, preserveAspectRatio: "none", role: "img", "aria-label": "Memory in use by command", onclick: hit },
      svg("path", { d: `M0 100${points}V100z` }), svg("rect.cursor", { y: 0, height: 100, width: 1, x: -9 }));
  }

  // markCommands marks the commands of what is selected and shows the first one.
  function markCommands(app) {
    for (const side of ["before", "after"]) {
      const list = document.getElementById("commands-" + side);
      if (!list) continue;
      const wanted = new Set(app.node >= 0 ? app.commandsOf(app.node, side) : []);
      const chosen = app.command?.side === side ? app.command.index : -1;
      if (chosen >= 0) wanted.add(chosen);
      const first = chosen >= 0 ? chosen : Math.min(...wanted);
      for (const li of list.querySelectorAll(".here")) if (!wanted.has(Number(li.dataset.command))) li.classList.remove("here");
      for (const i of wanted) list.children[i]?.classList.add("here");
      const cursor = list.parentElement.querySelector(".cursor");
      cursor.setAttribute("x", wanted.size ? first : -9);
      const li = wanted.size ? list.children[first] : null;
      if (li && list.clientHeight) {
        const top = li.offsetTop - list.offsetTop;
        if (top < list.scrollTop || top + li.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 3;
      }
    }
  }

  Object.assign(view, { hasCommands, commandsTab, markCommands });
})((globalThis.nnopt ??= {}));
