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
function unlzma(input) {
  const lc = input[0], size = new DataView(input.buffer, input.byteOffset).getUint32(5, true), out = new Uint8Array(size);
  const isMatch = 0, isRep = 192, isRep0 = 204, isRep1 = 216, isRep2 = 228, isLong = 240, slots = 432, special = 688, align = 802, lens = 818, repLens = 1332, literals = 1846;
  const probs = new Uint16Array(literals + (768 << lc)).fill(1024);
  let pos = 13, range = -1, code = 0;
  for (let i = 0; i < 5; i++) code = (code << 8) | input[pos++];

  const bit = (i) => {
    const p = probs[i], bound = Math.imul(range >>> 11, p);
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
      code = (code << 8) | input[pos++];
    }
    return b;
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
      range >>>= 1;
      const b = code >>> 0 < range >>> 0 ? 0 : 1;
      if (b) code = (code - range) | 0;
      v = (v << 1) | b;
      if ((range & 0xff000000) === 0) {
        range <<= 8;
        code = (code << 8) | input[pos++];
      }
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
      let m = 1;
      if (state >= 7) {
        for (let expected = out[n - r0 - 1]; m < 256; expected <<= 1) {
          const x = (expected >> 7) & 1, b = bit(base + ((1 + x) << 8) + m);
          m = (m << 1) | b;
          if (x !== b) break;
        }
      }
      while (m < 256) m = (m << 1) | bit(base + m);
      out[n++] = m;
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
