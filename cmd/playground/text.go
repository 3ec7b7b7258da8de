package main

import "unicode/utf8"

// asText returns data as a text for an element of a page: seven bits a character, the highest first.
// What a page would change or take for markup becomes a letter of two bytes. That is a sixth more than
// data have, where base64 is a third more.
func asText(data []byte) string {
	out := make([]byte, 0, len(data)+len(data)/5)
	add := func(v byte) {
		if v == 0 || v == '\r' || v == '<' {
			out = utf8.AppendRune(out, rune(v)+textShift)
			return
		}
		out = append(out, v)
	}
	have, n := uint32(0), 0
	for _, b := range data {
		have, n = have<<8|uint32(b), n+8
		for ; n >= 7; n -= 7 {
			add(byte(have >> (n - 7) & 0x7f))
		}
		have &= 1<<n - 1
	}
	if n > 0 {
		add(byte(have << (7 - n) & 0x7f))
	}
	return string(out)
}

// textShift is what a letter of two bytes has added.
const textShift = 0xc0
