// Adds what ONNX Runtime, its optimizer off, makes of the inputs of cases in the form of ONNX's own tests:
// output_0.pb, …, beside input_0.pb, …. A case that it refuses is deleted, and counted by reason.
// Usage: node answer.js FOLDER of cases, with onnxruntime-node in NODE_PATH.
const fs = require('fs'), path = require('path'), ort = require('onnxruntime-node');
const root = process.argv[2];
const types = {1: 'float32', 2: 'uint8', 3: 'int8', 4: 'uint16', 5: 'int16', 6: 'int32', 7: 'int64', 9: 'bool', 10: 'float16', 11: 'float64', 12: 'uint32', 13: 'uint64'};
const arrays = {float32: Float32Array, uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array, bool: Uint8Array,
  float16: Uint16Array, float64: Float64Array, uint32: Uint32Array, uint64: BigUint64Array};
// varint returns a number and where it ends.
function varint(b, i) { let n = 0n, s = 0n; for (;;) { const c = b[i++]; n |= BigInt(c & 127) << s; s += 7n; if (c < 128) return [Number(n), i]; } }
// read reads a tensor that has its dimensions one by one or packed, its type, name and raw data.
function read(b) {
  const t = {dims: [], raw: Buffer.alloc(0)};
  for (let i = 0; i < b.length;) {
    let tag, v; [tag, i] = varint(b, i); [v, i] = varint(b, i);
    const part = (tag & 7) == 2 ? b.subarray(i, i += v) : null;
    if (tag == 8) t.dims.push(v); else if (tag == 10) for (let k = 0; k < part.length;) { [v, k] = varint(part, k); t.dims.push(v); }
    else if (tag == 16) t.type = v; else if (tag == 66) t.name = part.toString(); else if (tag == 74) t.raw = part;
  }
  return t;
}
function number(n) { const out = []; for (; n > 127; n = Math.floor(n / 128)) out.push(n % 128 | 128); return Buffer.from([...out, n]); }
const field = (tag, data) => Buffer.concat([Buffer.from([tag]), number(data.length), data]);
// write returns the message of a tensor.
function write(name, t) {
  const raw = Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength), type = Object.keys(types).find(k => types[k] == t.type);
  return Buffer.concat([...t.dims.map(d => Buffer.concat([Buffer.from([8]), number(d)])), Buffer.from([16]), number(+type), field(66, Buffer.from(name)), field(74, raw)]);
}
function tensor(t) {
  const type = types[t.type], A = arrays[type], data = t.raw.buffer.slice(t.raw.byteOffset, t.raw.byteOffset + t.raw.length);
  return new ort.Tensor(type, new A(data), t.dims);
}
async function answer(dir) {
  const s = await ort.InferenceSession.create(path.join(dir, 'model.onnx'), {graphOptimizationLevel: 'disabled', logSeverityLevel: 4, intraOpNumThreads: 1});
  for (const set of fs.readdirSync(dir).filter(f => f.startsWith('test_data_set_'))) {
    const feeds = {}, sub = path.join(dir, set);
    for (const f of fs.readdirSync(sub).filter(f => f.startsWith('input_'))) { const t = read(fs.readFileSync(path.join(sub, f))); if (s.inputNames.includes(t.name)) feeds[t.name] = tensor(t); }
    const r = await s.run(feeds);
    s.outputNames.forEach((n, k) => fs.writeFileSync(path.join(sub, `output_${k}.pb`), write(n, r[n])));
  }
  await s.release();
}
// A worker answers cases one by one and says how each went. Some make ONNX Runtime crash: then another worker
// goes on behind them.
async function work(list) {
  for (const f of list) {
    let text = '';
    try { await answer(path.join(root, f)); } catch (e) { text = String(e).replace(/\n/g, ' ').slice(0, 400); }
    fs.writeSync(1, JSON.stringify([f, text]) + '\n');
  }
}
if (process.argv[3]) work(JSON.parse(fs.readFileSync(0)));
else {
  const {spawnSync} = require('child_process'), why = {};
  let rest = fs.readdirSync(root).sort().filter(f => fs.existsSync(path.join(root, f, 'model.onnx'))), made = 0;
  while (rest.length) {
    const r = spawnSync(process.execPath, [__filename, root, 'work'], {input: JSON.stringify(rest), maxBuffer: 1 << 30});
    const said = r.stdout.toString().split('\n').filter(l => l.endsWith(']')).map(l => JSON.parse(l));
    if (said.length < rest.length) said.push([rest[said.length], `it crashes: ${r.signal || r.status} ${r.stderr.toString().slice(-200)}`]);
    rest = rest.slice(said.length);
    for (const [f, text] of said) {
      if (!text) { made++; continue; }
      const key = text.replace(/random_\d+|'[^']*'|[\w.]*\d[\w.]*|\([^)]*\)/g, '').slice(0, 150);
      (why[key] ||= [0, f, text])[0]++;
      fs.rmSync(path.join(root, f), {recursive: true});
    }
  }
  console.log(`${made} cases answered`);
  for (const [n, f, text] of Object.values(why).sort((a, b) => b[0] - a[0])) console.log(`refused ${n} like ${f}: ${text}`);
}
