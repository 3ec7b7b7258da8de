// Examples to start from, each with a sentence about what to look at, and a hint at the first visit.
(function (view) {
  "use strict";

  const { el, $ } = view;

  const examples = [
    { name: "Cancel", expr: "(y + z)*x/(y + z) + tanh(x)*0", variables: "x y z: vector",
      note: "Two passes are enough: canonicalize sees that y + z cancels and that a product with 0 is 0. Step with the arrows, and choose an apply that is gone: its details name the rule." },
    { name: "Fuse", expr: "tanh(x*y + 1)*exp(-x)", variables: "x y: vector",
      note: "Nothing cancels here, and still five applies become one: elemwise_fusion makes a single loop of them. Open the Rules tab to see which rules were tried in vain." },
    { name: "Stable softmax", expr: "log(softmax(x))", variables: "x: matrix",
      note: "The logarithm of a softmax loses digits, so stabilize makes one op of both. Take out the tag stabilize in the query, and it stays as it was." },
    { name: "log(1 + x)", expr: "log(1 + exp(x)) + log(1 - x)", variables: "x: vector",
      note: "log1p and softplus are exact where the typed formula is not. Press Run: both sides compute the same, up to rounding." },
    { name: "Gradient", expr: "sum(tanh(dot(X, w) + b)**2)", variables: "X: matrix; w b: vector", grad: "w, b",
      note: "The graph is that of two gradients. They share most of their parts, which merge finds; look at how many applies each pass leaves." },
    { name: "Products", expr: "dot(dot(A, B), v)", variables: "A B: float64[200, 200]; v: float64[200]",
      note: "A matrix times a matrix times a vector: in another order it takes a hundredth of the operations. The table of ops in the Report tab counts them." },
    { name: "Saturation", expr: "(a*b + a*c) / a + (b + c)*2", variables: "a b c: vector", query: "fast_run +saturate",
      note: "An e-graph holds all forms at once, and the cheapest is taken. The Report tab shows laps, e-nodes, and which rules were banned." },
    { name: "Subtensors", expr: "(x + y)[2:5]", variables: "x y: vector",
      note: "Only three elements are wanted, so the slice moves below the sum, and the sum computes three." },
    { name: "Shapes", expr: "zeros_like(x) + x.shape[0]*sum(ones_like(x))", variables: "x: float32[7]",
      note: "Where sizes are known, shapes and what is made of them are folded into a constant." },
    { name: "In place", expr: "exp(sort(x)) + 1", variables: "x: vector", query: "fast_run -fusion",
      note: "Without fusion, the last passes let applies overwrite what nobody reads any more. Choose one to see what it destroys." },
    { name: "A wrong rule", expr: "tanh(x) + tanh(x)", variables: "x: vector", rules: "# This is wrong: what is the sum of two tanh?\nmy_rule: canonicalize\n    (add x x) => (mul 3 x)\n",
      note: "The rule on the right is wrong. Check it by machine, and it answers with numbers for which both sides differ." },
    { name: "Rules that undo each other", expr: "x*2 + y", variables: "x y: vector", rules: "# One way,\nto_sum: canonicalize\n    (mul 2 x) => (add x x)\n# and back.\nto_product: canonicalize\n    (add x x) => (mul 2 x)\n",
      note: "Each of the two rules is right, and together they go on for ever. The optimizer notices, and says which rules undo each other." },
  ];

  // exampleBox chooses an example.
  view.exampleBox = (app) => {
    const box = el("select", { name: "example", "aria-label": "Examples", onchange: () => choose(app, examples[box.value]) },
      el("option", { value: "" }, "Examples"), examples.map((x, i) => el("option", { value: i }, x.name)));
    return box;
  };

  async function choose(app, x) {
    if (!x || document.body.hasAttribute("data-asking")) return;
    note(el("p", null, el("b", null, x.name + ". "), x.note));
    if (x.rules) app.openTab("live");
    await view.ask(app, { expr: x.expr, variables: x.variables, grad: x.grad ?? "", query: x.query ?? "fast_run", rules: x.rules ?? "" });
  }

  // note shows a text above the graph.
  function note(...parts) {
    $("note")?.remove();
    const box = el("aside", { id: "note", "aria-label": "What to look at" }, parts, el("button.small", { onclick: () => box.remove() }, "close"));
    $("step").before(box);
  }

  addEventListener("DOMContentLoaded", () => {
    // Most passes find nothing in a small graph.
    $("busy").click();
    $("theme").before(el("a.about", { href: "https://github.com/nnopt/nnopt", target: "_blank", rel: "noopener", title: "What nnopt is, and its source" }, "About"));
    if (view.remembered.get("visited")) return;
    view.remembered.set("visited", "1");
    note(el("ol", null, el("li", null, "Type an expression, choose an example, or drop a file, such as an ONNX model. It stays in this page."),
      el("li", null, "Press ", el("b", null, "Optimize"), ", and step through the passes with ", el("b", null, "→"), ": what is new is green, what goes is red."),
      el("li", null, "Choose a box: its details name the rule that made or took it, and say why other rules did not fire.")));
  });

  Object.assign(view, { examples });
})((globalThis.nnopt ??= {}));
