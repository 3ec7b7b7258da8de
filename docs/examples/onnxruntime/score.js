// score.js scores utterances in ONNX Runtime with a model that nnopt export has written.
//
//   node score.js MODEL.onnx LEFT STEP FEATURES.txt IVECTORS.txt|- [SCORES.txt]
//
// LEFT is the number of frames before the first output, and STEP the number of frames per row of
// output; the metadata of the model have both. Archives are in text (nnopt copy ark:feats.ark ark,t:-).
// All chunks of an utterance are sequences of one run. If there is a MODEL.1.onnx, the models are those
// of a stream, which is run chunk by chunk. With SCORES.txt, the scores are compared with it; otherwise
// they are printed.
const fs = require('fs');
const ort = require('onnxruntime-node');

// archive reads an archive of matrices, or of vectors as matrices of one row, in text.
function archive(file) {
  const list = new Map();
  for (const [, key, body] of fs.readFileSync(file, 'utf8').matchAll(/(\S+)\s+\[([^\]]*)\]/g)) {
    const rows = body.trim().split('\n').map(row => row.trim().split(/\s+/).map(Number));
    list.set(key, rows);
  }
  return list;
}

// sizes returns the rows and columns of an input or output.
function sizes(list, name) {
  const found = list.find(m => m.name === name);
  return found && found.shape.slice(1);
}

// tensor makes a tensor of rows, frames of which are repeated beyond the ends of the utterance.
function tensor(frames, starts, rows) {
  const cols = frames[0].length, data = new Float32Array(starts.length * rows * cols);
  starts.forEach((start, n) => {
    for (let i = 0; i < rows; i++) {
      const t = Math.min(Math.max(start + i, 0), frames.length - 1);
      data.set(frames[t], (n * rows + i) * cols);
    }
  });
  return new ort.Tensor('float32', data, [starts.length, rows, cols]);
}

async function main() {
  const [model, left, step, features, ivectors, scores] = process.argv.slice(2);
  const first = model.replace(/(\.[^.]*)?$/, '.1$1'), looped = fs.existsSync(first);
  const sessions = [];
  for (const file of looped ? [first, model] : [model]) sessions.push(await ort.InferenceSession.create(file));
  const vectors = ivectors === '-' ? null : archive(ivectors), expected = scores ? archive(scores) : null;
  const [rows, cols] = sizes(sessions[0].outputMetadata, 'output'), chunk = rows * step;
  const right = sizes(sessions[0].inputMetadata, 'input')[0] - left - chunk;
  for (const [key, frames] of archive(features)) {
    const chunks = Math.ceil(frames.length / chunk), all = [];
    // feeds returns the inputs of some chunks, as sequences.
    const feeds = (session, starts) => {
      const inputs = { input: tensor(frames, starts, sizes(session.inputMetadata, 'input')[0]) };
      const ivector = sizes(session.inputMetadata, 'ivector');
      if (ivector) inputs.ivector = tensor(vectors.get(key), starts, ivector[0]);
      return inputs;
    };
    if (looped) {
      let state = {};
      for (let k = 0; k < chunks; k++) {
        const session = sessions[Math.min(k, 1)], start = k === 0 ? -left : k * chunk + right;
        const out = await session.run({ ...feeds(session, [start]), ...state });
        all.push(...out.output.data);
        // What a chunk leaves for the next one is next.0, next.1 …, and comes in as state.0, state.1 ….
        state = {};
        for (const name in out) if (name.startsWith('next.')) state[name.replace('next', 'state')] = out[name];
      }
    } else {
      const starts = Array.from({ length: chunks }, (_, k) => k * chunk - left);
      all.push(...(await sessions[0].run(feeds(sessions[0], starts))).output.data);
    }
    const wanted = Math.ceil(frames.length / step), ours = [];
    for (let i = 0; i < wanted; i++) ours.push(all.slice(i * cols, (i + 1) * cols));
    if (!expected) {
      console.log(`${key}  [\n${ours.map(row => '  ' + row.join(' ')).join('\n')} ]`);
      continue;
    }
    const theirs = expected.get(key).flat();
    let difference = 0, norm = 0;
    ours.flat().forEach((x, i) => { difference += (x - theirs[i]) ** 2; norm += theirs[i] ** 2; });
    console.log(`${key}: ${wanted} rows of ${cols}, relative difference ${Math.sqrt(difference / norm).toExponential(1)}`);
  }
}

main();
