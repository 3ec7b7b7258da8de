package kernel

// cpuid returns two registers of a leaf of what the processor says of itself.
func cpuid(leaf uint32) (ax, cx uint32)

// halvesVectors reports whether a vector of AVX-512 takes two steps: with Zen 4, family 19h of AMD.
func halvesVectors() bool {
	const maker, version = 0, 1
	ax, _ := cpuid(version)
	_, name := cpuid(maker)
	const amd = 'c' | 'A'<<8 | 'M'<<16 | 'D'<<24 // the end of AuthenticAMD
	return name == amd && ax>>8&15 == 15 && (ax>>20&255)+15 == 0x19
}

// secondCache returns the size of the second-level cache in bytes, or 0 if the processor does not tell.
func secondCache() int {
	const highest, caches = 0x80000000, 0x80000006
	if last, _ := cpuid(highest); last < caches {
		return 0
	}
	_, cx := cpuid(caches)
	return int(cx>>16) << 10
}

// convertsHalves reports whether there are instructions that convert float16s: F16C.
func convertsHalves() bool {
	const version = 1
	_, cx := cpuid(version)
	return cx>>29&1 == 1
}
