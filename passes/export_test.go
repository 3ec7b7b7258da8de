package passes

import (
	"math/rand/v2"
	"slices"

	"github.com/nnopt/nnopt/optdb"
)

// Shuffled returns the standard database with its entries in a random order, of those that the
// constraints allow.
func Shuffled(seed uint64) (*optdb.SequenceDB, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	rows := table()
	byDatabase := map[string][]*row{}
	var databases []string
	for i := range rows {
		in := rows[i].in
		if byDatabase[in] == nil {
			databases = append(databases, in)
		}
		byDatabase[in] = append(byDatabase[in], &rows[i])
	}
	for _, in := range databases {
		position := 0.0
		for _, r := range shuffle(rng, byDatabase[in]) {
			if position += 1.0 / 16; r.name == "add_destroy_handler" {
				position = optdb.PositionInplace
			}
			r.position = position
		}
	}
	return assemble(rows)
}

// shuffle sorts rows topologically, at random.
func shuffle(rng *rand.Rand, rows []*row) []*row {
	blocked := func(r *row) bool {
		return slices.ContainsFunc(rows, func(o *row) bool {
			_, after := r.after[o.name]
			_, before := o.before[r.name]
			return after || before
		})
	}
	sorted := make([]*row, 0, len(rows))
	rows = slices.Clone(rows)
	for len(rows) > 0 {
		var free []int
		for i, r := range rows {
			if !blocked(r) {
				free = append(free, i)
			}
		}
		if len(free) == 0 {
			return append(sorted, rows...) // assemble says why
		}
		i := free[rng.IntN(len(free))]
		sorted = append(sorted, rows[i])
		rows = slices.Delete(rows, i, i+1)
	}
	return sorted
}
