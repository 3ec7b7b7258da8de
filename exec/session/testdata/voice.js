// Writes what ONNX Runtime, its optimizer off, says of a recording: for each model MODEL.onnx of Silero's voice
// detector in a folder, MODEL.json, a list of the probabilities of speech in parts of 512 samples of test.wav.
// Usage: node voice.js FOLDER, with onnxruntime-node in NODE_PATH.
const fs = require('fs'), path = require('path'), ort = require('onnxruntime-node');
const samples = 512, context = 64, folder = process.argv[2];
const wav = fs.readFileSync(path.join(folder, 'test.wav')), n = (wav.length - 44) >> 1;
const sound = Float32Array.from({length: n}, (_, i) => wav.readInt16LE(44 + 2 * i) / 32768);
const zeros = (...dims) => new ort.Tensor('float32', new Float32Array(dims.reduce((a, b) => a * b)), dims);
(async () => {
  for (const name of fs.readdirSync(folder).filter(f => f.endsWith('.onnx'))) {
    const s = await ort.InferenceSession.create(path.join(folder, name), {graphOptimizationLevel: 'disabled', logSeverityLevel: 4});
    const has = i => s.inputNames.includes(i), list = [];
    // The fourth version has a state of two parts, and later ones see the end of the part before.
    const before = has('state') ? context : 0, feeds = has('state') ? {state: zeros(2, 1, 128)} : {h: zeros(2, 1, 64), c: zeros(2, 1, 64)};
    if (has('sr')) feeds.sr = new ort.Tensor('int64', BigInt64Array.from([16000n]), []);
    let part = new Float32Array(before + samples);
    for (let i = 0; i < n; i += samples) {
      const next = new Float32Array(before + samples);
      next.set(part.subarray(samples));
      next.set(sound.subarray(i, i + samples), before);
      feeds.input = new ort.Tensor('float32', part = next, [1, next.length]);
      const r = await s.run(feeds);
      list.push(r.output.data[0]);
      if (feeds.state) feeds.state = r.stateN; else [feeds.h, feeds.c] = [r.hn, r.cn];
    }
    fs.writeFileSync(path.join(folder, name.replace(/onnx$/, 'json')), JSON.stringify(list));
  }
})();
