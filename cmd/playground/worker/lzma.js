// unpacked returns the bytes of a text with seven bits a character: see text.go.
function unpacked(text) {
  const out = new Uint8Array(Math.floor((text.length * 7) / 8));
  let have = 0, n = 0, k = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    have = (have << 7) | (c < 128 ? c : c - 0xc0);
    if ((n += 7) >= 8) {
      n -= 8;
      out[k++] = have >> n;
      have &= (1 << n) - 1;
    }
  }
  return out;
}

// unlzma decompresses a file in LZMA's first format, as lzma.go writes it: without contexts of positions.
//
// The range and the code have 32 bits. As variables that functions share they would be objects of the
// heap, since an engine of JavaScript keeps 31 bits in a variable; in an array they are numbers, and
// the loop that most bits go through has them in variables of its own.
function unlzma(input) {
  const lc = input[0], size = new DataView(input.buffer, input.byteOffset).getUint32(5, true), out = new Uint8Array(size);
  const isMatch = 0, isRep = 192, isRep0 = 204, isRep1 = 216, isRep2 = 228, isLong = 240, slots = 432, special = 688, align = 802, lens = 818, repLens = 1332, literals = 1846;
  const probs = new Uint16Array(literals + (768 << lc)).fill(1024), shared = new Int32Array([-1, 0]); // the range and the code
  let pos = 13;
  for (let i = 0; i < 5; i++) shared[1] = (shared[1] << 8) | input[pos++];
  const bit = (i) => {
    const p = probs[i], range = shared[0], bound = Math.imul(range >>> 11, p);
    if (shared[1] >>> 0 < bound >>> 0) {
      probs[i] = p + ((2048 - p) >> 5);
      shared[0] = bound;
      normalize();
      return 0;
    }
    probs[i] = p - (p >> 5);
    shared[0] = range - bound;
    shared[1] -= bound;
    normalize();
    return 1;
  };
  const normalize = () => {
    if (shared[0] & 0xff000000) return;
    shared[0] <<= 8;
    shared[1] = (shared[1] << 8) | input[pos++];
  };
  // literal reads a byte in the contexts from base on. As long as its bits are those of expected, if
  // that has any, they have contexts of their own.
  const literal = (base, expected, matched) => {
    let range = shared[0], code = shared[1], at = pos, m = 1;
    while (m < 256) {
      const x = (expected >> 7) & 1, i = base + m + (matched ? (1 + x) << 8 : 0), p = probs[i], bound = Math.imul(range >>> 11, p);
      expected <<= 1;
      let b = 0;
      if (code >>> 0 < bound >>> 0) {
        range = bound;
        probs[i] = p + ((2048 - p) >> 5);
      } else {
        range = (range - bound) | 0;
        code = (code - bound) | 0;
        probs[i] = p - (p >> 5);
        b = 1;
      }
      if ((range & 0xff000000) === 0) {
        range <<= 8;
        code = (code << 8) | input[at++];
      }
      m = (m << 1) | b;
      matched &&= x === b;
    }
    shared[0] = range;
    shared[1] = code;
    pos = at;
    return m;
  };
  const tree = (base, n) => {
    let m = 1;
    for (let i = 0; i < n; i++) m = (m << 1) | bit(base + m);
    return m - (1 << n);
  };
  const reverse = (base, n) => {
    let m = 1, v = 0;
    for (let i = 0; i < n; i++) {
      const b = bit(base + m);
      m = (m << 1) | b;
      v |= b << i;
    }
    return v;
  };
  const direct = (n) => {
    let v = 0;
    for (; n > 0; n--) {
      shared[0] >>>= 1;
      const b = shared[1] >>> 0 < shared[0] >>> 0 ? 0 : 1;
      if (b) shared[1] -= shared[0];
      v = (v << 1) | b;
      normalize();
    }
    return v;
  };
  const length = (base) => 2 + (!bit(base) ? tree(base + 2, 3) : !bit(base + 1) ? 8 + tree(base + 130, 3) : 16 + tree(base + 258, 8));
  const distance = (l) => {
    const slot = tree(slots + (Math.min(l - 2, 3) << 6), 6), low = (slot >> 1) - 1;
    if (slot < 4) return slot;
    const base = (2 | (slot & 1)) << low;
    return slot < 14 ? base + reverse(special + base - slot - 1, low) : base + direct(low - 4) * 16 + reverse(align, 4);
  };

  let state = 0, r0 = 0, r1 = 0, r2 = 0, r3 = 0, n = 0;
  while (n < size) {
    if (!bit(isMatch + (state << 4))) {
      const base = literals + 768 * ((n ? out[n - 1] : 0) >> (8 - lc));
      out[n] = literal(base, state >= 7 ? out[n - r0 - 1] : 0, state >= 7);
      n++;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let l;
    if (!bit(isRep + state)) {
      r3 = r2;
      r2 = r1;
      r1 = r0;
      l = length(lens);
      r0 = distance(l);
      state = state < 7 ? 7 : 10;
    } else {
      const older = bit(isRep0 + state);
      if (!older && !bit(isLong + (state << 4))) {
        l = 1;
        state = state < 7 ? 9 : 11;
      } else {
        if (older) {
          let d = r1;
          if (bit(isRep1 + state)) {
            d = r2;
            if (bit(isRep2 + state)) {
              d = r3;
              r3 = r2;
            }
            r2 = r1;
          }
          r1 = r0;
          r0 = d;
        }
        l = length(repLens);
        state = state < 7 ? 8 : 11;
      }
    }
    for (let from = n - r0 - 1, end = n + l; n < end; ) out[n++] = out[from++];
  }
  return out;
}
