package egraph

import "testing"

// mathSum is a sum of seven terms that keeps rules busy.
const mathSum = `(add (i (ln x) x) (add (i (add x (cos x)) x) (add (i (mul (cos x) x) x) (add (d x (add 1 (mul 2 x))) (add (d x (sub (pow x 3) (mul 7 (pow x 2)))) (add (add (mul y (add x y)) (sub (add x 2) (add x x))) (div 1 (sub (div (add 1 (sqrt five)) 2) (div (sub 1 (sqrt five)) 2)))))))))`

func BenchmarkMath(b *testing.B) {
	for _, c := range []struct {
		name    string
		nodes   int
		backoff Backoff
	}{
		{"every_lap_211k", 210700, Backoff{}},
		{"every_lap_2436k", 2436063, Backoff{}},
		{"backoff_88k", 88296, Backoff{1000, 5}},
		{"backoff_449k", 448928, Backoff{1000, 5}},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newMath(b)
			rules := w.rules(b, nil)
			var nodes int
			for b.Loop() {
				g := New(w.lang, WithAnalysis(w.analysis()))
				w.add(b, g, mathSum)
				report, err := g.Saturate(b.Context(), rules, Options{Limits: Limits{Nodes: c.nodes}, Backoff: c.backoff})
				if err != nil {
					b.Fatal(err)
				}
				nodes += report.Nodes
			}
			b.ReportMetric(float64(nodes)/b.Elapsed().Seconds(), "nodes/s")
		})
	}
}

// BenchmarkProblem solves the problems of TestMath.
func BenchmarkProblem(b *testing.B) {
	w := newMath(b)
	for k, p := range mathProblems {
		b.Run(p.name, func(b *testing.B) {
			rules := w.rulesOf(b, k)
			for b.Loop() {
				w.solve(b, k, rules)
			}
		})
	}
}
