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

// gunzip decompresses bytes.
async function gunzip(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
