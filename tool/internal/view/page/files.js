// Files that come in, by a dialog or dropped, and those that go out: models, graphs, pictures, profiles,
// recordings.
(function (view) {
  "use strict";

  const { el, bytes } = view;

  // chooseFiles asks for files.
  function chooseFiles(app) {
    const input = el("input", { type: "file", multiple: true, onchange: () => take(app, [...input.files]) });
    input.click();
  }

  function startFiles(app) {
    addEventListener("dragover", (e) => app.live && e.preventDefault());
    addEventListener("drop", (e) => {
      if (!app.live || !e.dataTransfer.files.length) return;
      e.preventDefault();
      take(app, [...e.dataTransfer.files]);
    });
  }

  // take takes files: rules are written into their form, a recording is shown, and the first of the others is
  // optimized; what is beside it may be its data.
  async function take(app, files) {
    let chosen = null;
    await view.busy(app, async () => {
      const total = files.reduce((n, f) => n + f.size, 0), { largest } = view.transport;
      if (total > largest) {
        throw new Error(`${files.map((f) => f.name).join(", ")}: ${bytes(total)} are too much for the memory of a page, which takes ${bytes(largest)}. ` +
          `"nnopt view --listen ${files[0].name}" has no such limit.`);
      }
      const subjects = [];
      for (const f of files) {
        const text = f.size < 64 << 20 && /\.(json|rules|txt)$/i.test(f.name) ? await f.text() : "";
        if (/^\s*\{/.test(text) && text.includes('"nnopt-view"')) return show(app, text);
        if (/\.rules$/i.test(f.name) || (/=>/.test(text) && !/^graph \{/m.test(text))) rules(app, text);
        else subjects.push(f);
      }
      for (const f of subjects) await view.transport.put(f.name, f);
      chosen = (subjects.find((f) => /\.(onnx|mdl|raw|config|graph|nnet)$/i.test(f.name)) ?? subjects[0])?.name;
    });
    if (chosen) await view.optimizeFile(app, chosen);
  }

  // show shows a recording.
  function show(app, text) {
    const { live } = app, data = view.checked(JSON.parse(text));
    const before = app.run.data;
    try {
      app.open({ ...data, live: { ...live, query: data.query } });
    } catch (err) {
      app.open(before);
      throw new Error("This is no recording that this page can show: " + err.message + ".");
    }
    view.say(app, el("p", null, "A recording: the graph below is what it holds."));
  }

  function rules(app, text) {
    app.openTab("live");
    view.useRules(app, text);
    view.say(app, el("p", null, "The rules are below. Check them, or optimize with them."));
  }

  // saveBox chooses what to download.
  function saveBox(app) {
    const kinds = [["", "Save…"], ["svg", "picture, SVG"], ["png", "picture, PNG"], ["recording", "recording, JSON"], ["page", "page, HTML"], ["graph", "graph"], ["dot", "graph for Graphviz"],
      ["model", "model, ONNX"], ["json", "profile, JSON"], ["pprof", "profile for pprof"], ["trace", "profile, trace"]];
    const box = el("select", { name: "save", "aria-label": "Save", onchange: () => {
      const kind = box.value;
      box.value = "";
      save(app, kind);
    } }, kinds.filter(([k]) => k !== "model" || /\.onnx$/i.test(app.live.file ?? "")).map(([k, text]) => el("option", { value: k }, text)));
    return box;
  }

  const endings = { recording: ".view.json", page: ".html", graph: ".graph", dot: ".gv", model: ".onnx", json: ".profile.json", pprof: ".pb.gz", trace: ".trace.json", svg: ".svg", png: ".png" };

  // save downloads something of what is shown.
  function save(app, kind) {
    return view.busy(app, async () => {
      const name = (app.live.file || "expression").replace(/\.\w+$/, "") + (kind === "model" ? "-optimized" : "") + endings[kind];
      let data;
      if (kind === "svg") data = new Blob([pictureText(app)], { type: "image/svg+xml" });
      else if (kind === "png") data = await pictureBytes(app);
      else if (kind === "recording") data = new Blob([JSON.stringify({ ...app.run.data, live: undefined })], { type: "application/json" });
      else data = new Blob([await view.transport.ask("export", { ...view.settings(app), format: kind })]);
      const link = el("a", { download: name, href: URL.createObjectURL(data), "data-saved": kind }, name);
      view.say(app, el("p", null, "Saved: ", link, ` ${bytes(data.size)}`));
      link.click();
    });
  }

  // pictureText returns the picture as a file of SVG: all of it where it can be drawn whole, else what is in
  // view.
  function pictureText(app) {
    app.picture.drawAll();
    const scene = document.querySelector("#picture .scene"), copy = scene.cloneNode(true), box = scene.getBBox();
    copy.removeAttribute("transform");
    const style = getComputedStyle(document.documentElement);
    const text = document.querySelector("style").textContent, names = new Set(text.match(/--[\w-]+(?=:)/g));
    const colours = [...names].map((n) => `${n}: ${style.getPropertyValue(n)}`).join("; ");
    const view4 = [box.x - 20, box.y - 20, box.width + 40, box.height + 40].map((x) => Math.round(x));
    // The rules of the page hold for the picture, too; what else they are for is not in it.
    const sheet = "style"; // as a tag it would look like an element of this page
    const rules = text.split("\n").filter((l) => /^\.(node|box|hue|lines|hot|chip|sketch)/.test(l)).join("\n");
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${view4.join(" ")}" width="${view4[2]}" height="${view4[3]}" style="${colours.replaceAll('"', "'")}; background: var(--paper)">` +
      `<${sheet}>${rules.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</${sheet}>${new XMLSerializer().serializeToString(copy)}</svg>`;
  }

  // pictureBytes returns the picture as pixels.
  async function pictureBytes(app) {
    const image = new Image();
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(pictureText(app));
    await image.decode();
    const k = Math.min(2, 16000 / Math.max(image.width, image.height)), canvas = el("canvas", { width: Math.max(1, k * image.width), height: Math.max(1, k * image.height) });
    const c = canvas.getContext("2d");
    c.fillStyle = getComputedStyle(document.body).backgroundColor;
    c.fillRect(0, 0, canvas.width, canvas.height);
    c.drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done, fail) => canvas.toBlob((b) => (b ? done(b) : fail(new Error("The picture is too large for pixels."))), "image/png"));
  }

  Object.assign(view, { startFiles, chooseFiles, saveBox, take, save });
})((globalThis.nnopt ??= {}));
