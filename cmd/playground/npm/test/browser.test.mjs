// Tests the package in a browser, which loads its files from a server as they are installed.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { test } from "node:test";

const names = [process.env.NNOPT_BROWSER, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"];
const browser = names.find((name) => {
  try {
    return name && execFileSync(name, ["--version"]);
  } catch {
    return false;
  }
});

// The page tells what it found, or what failed.
const page = `<!doctype html><script type="module">
const tell = (result) => fetch("/told", { method: "POST", body: JSON.stringify(result) });
try {
  const { open, optimize } = await import("/node_modules/nnopt/index.js");
  const bytes = new Uint8Array(await (await fetch("/model.onnx")).arrayBuffer());
  const { model, report } = await optimize(bytes, { flags: ["--shape=input_ids=1x3", "--shape=attention_mask=1x3"] });
  const m = await open(model);
  const ids = { dims: [1, 3], data: BigInt64Array.of(1n, 4n, 2n) }, mask = { dims: [1, 3], data: BigInt64Array.of(1n, 1n, 1n) };
  const { embedding } = await m.run({ input_ids: ids, attention_mask: mask });
  const refused = await m.run({ input_ids: ids }).catch((err) => err.message);
  await m.close();
  await tell({ report: typeof report, type: embedding.type, dims: embedding.dims, data: [...embedding.data], refused });
} catch (err) {
  await tell({ failed: String(err) });
}
</script>`;
const types = { ".js": "text/javascript", ".wasm": "application/wasm" };

test("a page optimizes and runs a model", { skip: browser ? false : "there is no chromium or google-chrome", timeout: 300_000 }, async () => {
  const home = mkdtempSync(join(tmpdir(), "nnopt-browser-"));
  let child;
  try {
    const told = await new Promise((resolve, reject) => {
      const server = createServer(async (request, response) => {
        if (request.method === "POST") {
          let text = "";
          for await (const part of request) text += part;
          response.end();
          server.close();
          return resolve(JSON.parse(text));
        }
        try {
          const body = request.url === "/" ? page : readFileSync(join(".", request.url));
          response.writeHead(200, { "Content-Type": types[extname(request.url)] ?? "text/html" }).end(body);
        } catch {
          response.writeHead(404).end();
        }
      });
      server.listen(0, "127.0.0.1", () => {
        // The sandbox needs what containers forbid.
        child = spawn(browser, ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", `--user-data-dir=${home}`, `http://127.0.0.1:${server.address().port}/`]);
        child.on("error", reject).on("exit", () => reject(new Error("the browser has ended")));
      });
    });
    assert.deepEqual([told.failed, told.report, told.type, told.dims], [undefined, "object", "float32", [1, 3]]);
    assert.deepEqual(told.data.map((v) => v.toFixed(2)), ["0.71", "0.71", "0.00"]);
    assert.match(told.refused, /attention_mask/);
  } finally {
    const ended = child?.exitCode === null && new Promise((resolve) => child.once("exit", resolve));
    child?.kill();
    await ended;
    rmSync(home, { recursive: true, force: true, maxRetries: 10 });
  }
});
