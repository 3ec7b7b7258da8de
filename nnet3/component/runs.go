package component

import "github.com/nnopt/nnopt/kernel"

// run says that Count rows of an output, OutStep apart from row Out on, take a row of the input
// each, InStep apart from row In on. A product can read and write such rows in place, through the
// strides. With an InStep of 0 all take the same row.
type run struct {
	Out, OutStep int32
	In, InStep   int32
	Count        int32
}

// input returns the input rows of r as a matrix.
func (r run) input(m kernel.Matrix) kernel.Matrix {
	return kernel.EveryNth(m, int(r.In), int(r.Count), int(r.InStep))
}

// rows returns the input rows of r, possibly one row repeated, as a matrix for a Segment.
func (r run) rows(m kernel.Matrix) kernel.Matrix {
	if r.InStep > 0 || r.Count < 2 {
		return r.input(m)
	}
	x := kernel.Rows(m, int(r.In), 1)
	x.Rows, x.Stride = int(r.Count), 0
	return x
}

// output returns the output rows of r as a matrix.
func (r run) output(m kernel.Matrix) kernel.Matrix {
	return kernel.EveryNth(m, int(r.Out), int(r.Count), int(r.OutStep))
}

// findRuns describes rows, the input row of each output row or -1 for none, by runs. It tries to
// find few.
func findRuns(rows []int32) []run {
	var runs []run
	for i := 0; i < len(rows); {
		if rows[i] < 0 {
			i++
			continue
		}
		r := run{Out: int32(i), OutStep: 1, In: rows[i], InStep: 1, Count: 1}
		if i+1 < len(rows) && rows[i+1] >= rows[i] {
			r.InStep = rows[i+1] - rows[i]
		}
		for i++; i < len(rows) && rows[i] >= 0 && rows[i]-rows[i-1] == r.InStep; i++ {
			r.Count++
		}
		runs = append(runs, r)
	}
	// Three sequences at every third time give as many runs of three rows as there are times;
	// turned around, they are three long runs. Products want long ones.
	return transposeRuns(runs)
}

// transposeRuns turns many short runs, all alike and equally spaced, into few long ones: for
// example, the runs of several sequences at every third time.
func transposeRuns(runs []run) []run {
	if len(runs) < 2 || int(runs[0].Count) >= len(runs) {
		return runs
	}
	first := runs[0]
	outStep, inStep := runs[1].Out-first.Out, runs[1].In-first.In
	// EveryNth can't go backwards.
	if inStep <= 0 {
		return runs
	}
	for i, r := range runs {
		if r.Count != first.Count || r.Count > 1 && r.InStep != first.InStep ||
			r.Out != first.Out+int32(i)*outStep || r.In != first.In+int32(i)*inStep {
			return runs
		}
	}
	turned := make([]run, first.Count)
	for k := range turned {
		turned[k] = run{
			Out: first.Out + int32(k), OutStep: outStep,
			In: first.In + int32(k)*first.InStep, InStep: inStep, Count: int32(len(runs)),
		}
	}
	return turned
}
