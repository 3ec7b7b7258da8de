package computation

// The ways in which CompressMatrix packs elements: values of its second argument.
const (
	CompressInt8   = 1
	CompressUint8  = 2
	CompressInt16  = 3
	CompressUint16 = 4
)

// compressedBytes returns the size of a compressed element in bytes.
func compressedBytes(kind int32) int64 {
	if kind < CompressInt8 || kind > CompressUint16 {
		return 4
	}
	return [...]int64{CompressInt8: 1, CompressUint8: 1, CompressInt16: 2, CompressUint16: 2}[kind]
}

// Counts are figures to compare computations by. The JSON names are those of the reference cases.
type Counts struct {
	Commands int `json:"commands"`
	// Matrices and Submatrices do not count the reserved entries.
	Matrices    int `json:"matrices"`
	Submatrices int `json:"submatrices"`
	// MaxMemoryBytes is Computation.MaxMemory.
	MaxMemoryBytes int64 `json:"max_memory_bytes"`
	// ByType counts the commands of each type that occurs, under Kaldi's names.
	ByType map[string]int `json:"by_type"`
}

// Counts counts commands, in all and by type, matrices, sub-matrices and bytes.
func (c *Computation) Counts() Counts {
	n := Counts{
		Commands:       len(c.Commands),
		Matrices:       max(len(c.Matrices)-1, 0),
		Submatrices:    max(len(c.Submatrices)-1, 0),
		MaxMemoryBytes: c.MaxMemory(),
		ByType:         map[string]int{},
	}
	for _, cmd := range c.Commands {
		n.ByType[cmd.Type.kaldiName()]++
	}
	return n
}
