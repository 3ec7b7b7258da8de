// usage: node ort.js FILE.onnx [RUNS [INPUTS OUTPUT]]: time of ONNX Runtime in milliseconds, on one thread: best and median of the
// runs, and until the first result, with the time to create the session.
//
// Inputs are random numbers, or float32s from the file INPUTS, in the order of the model's inputs; OUTPUT gets the first output.
// Needs: npm install --ignore-scripts onnxruntime-node
const fs = require('fs');
const ort = require(require.resolve('onnxruntime-node', { paths: [process.cwd()] }));

(async () => {
  const [file, runs = '60', from, to] = process.argv.slice(2);
  const begin = process.hrtime.bigint();
  const session = await ort.InferenceSession.create(file, { intraOpNumThreads: 1, interOpNumThreads: 1, graphOptimizationLevel: 'all' });
  const created = Number(process.hrtime.bigint() - begin) / 1e6;
  const given = from && new Float32Array(new Uint8Array(fs.readFileSync(from)).buffer);
  const feeds = {};
  let used = 0;
  session.inputNames.forEach((name, i) => {
    const shape = session.inputMetadata[i].shape;
    const size = shape.reduce((a, b) => a * b, 1);
    const data = given ? given.slice(used, used + size) : new Float32Array(size).map(() => Math.random() * 2 - 1);
    used += size;
    feeds[name] = new ort.Tensor('float32', data, shape);
  });
  const times = [];
  let result;
  for (let i = 0; i < +runs; i++) {
    const start = process.hrtime.bigint();
    result = await session.run(feeds);
    times.push(Number(process.hrtime.bigint() - start) / 1e6);
  }
  const first = created + times[0];
  times.sort((a, b) => a - b);
  console.log(file, 'best', times[0].toFixed(3), 'median', times[times.length >> 1].toFixed(3), 'first result', first.toFixed(1), 'ms');
  if (to) fs.writeFileSync(to, Buffer.from(result[session.outputNames[0]].data.buffer));
})();
