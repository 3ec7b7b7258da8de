// Tests of the package, as it is installed.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { command, open, optimize } from "nnopt";

const model = new Uint8Array(readFileSync("model.onnx"));
const inputs = {
  input_ids: { dims: [2, 3], data: BigInt64Array.of(1n, 4n, 2n, 3n, 7n, 0n) },
  attention_mask: { dims: [2, 3], data: BigInt64Array.of(1n, 1n, 1n, 1n, 1n, 0n) },
};

test("a model is described, and runs again and again", async () => {
  const m = await open(model);
  assert.deepEqual(m.inputs.map((v) => [v.name, v.type, v.dims]), [["input_ids", "int64", ["batch", "tokens"]], ["attention_mask", "int64", ["batch", "tokens"]]]);
  for (let i = 0; i < 3; i++) {
    const { embedding } = await m.run(inputs);
    assert.deepEqual([embedding.type, embedding.dims], ["float32", [2, 3]]);
    assert.deepEqual([...embedding.data].map((v) => v.toFixed(2)), ["0.71", "0.71", "0.00", "0.41", "0.41", "0.82"]);
  }
  await m.close();
  await assert.rejects(m.run(inputs));
});

test("a model that was optimized gives the same", async () => {
  const { model: small, report } = await optimize(model, { flags: ["--shape=input_ids=2x3", "--shape=attention_mask=2x3"] });
  assert.ok(report);
  const m = await open(small);
  const { embedding } = await m.run(inputs);
  assert.deepEqual([...embedding.data].map((v) => v.toFixed(2)), ["0.71", "0.71", "0.00", "0.41", "0.41", "0.82"]);
  await m.close();
});

test("an error says what is wrong", async () => {
  await assert.rejects(optimize(new Uint8Array([1, 2, 3])), /in\.onnx/);
  await assert.rejects(open(new Uint8Array([1, 2, 3])));
  const m = await open(model);
  await assert.rejects(m.run({ input_ids: inputs.input_ids }), /attention_mask/);
  await assert.rejects(m.run({ ...inputs, input_ids: { dims: [6], data: inputs.input_ids.data } }), /2 dimensions/);
  await assert.rejects(m.run({ ...inputs, input_ids: { dims: [2, 3], data: new Float32Array(6) } }), /Float32Array/);
  await assert.rejects(m.run({ ...inputs, input_ids: { dims: [2, 2], data: inputs.input_ids.data } }), /input_ids/);
  assert.equal((await m.run(inputs)).embedding.dims[0], 2);
  await m.close();
});

test("a command has files and texts", async () => {
  const r = await command(["info", "m.onnx"], { "m.onnx": model });
  assert.equal(r.status, 0);
  assert.match(r.stdout, /embedding/);
  assert.notEqual((await command(["no"])).status, 0);
});
