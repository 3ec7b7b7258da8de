package kernel

// cpuid returns two registers of a leaf of what the processor says of itself.
func cpuid(leaf uint32) (ax, cx uint32)

// secondCache returns the size of the second-level cache in bytes, or 0 if the processor does not tell.
func secondCache() int {
	const highest, caches = 0x80000000, 0x80000006
	if last, _ := cpuid(highest); last < caches {
		return 0
	}
	_, cx := cpuid(caches)
	return int(cx>>16) << 10
}
