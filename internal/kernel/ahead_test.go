package kernel

import (
	"testing"
	"unsafe"
)

// Tiles fetch every line of the stretch that they are to fetch, as far as they make enough fetches,
// and nothing but it.
func TestAheadFetchesAll(t *testing.T) {
	r := newRand()
	for _, set := range ownSets() {
		if set.fetches(4, false) == 0 {
			continue
		}
		for range 300 {
			n, k, steps := 1+r.IntN(300), 32+r.IntN(200), 0
			if r.IntN(2) == 0 {
				steps = 1 + r.IntN(k)
			}
			w := newWeights(set, random(r, n, k, 0), false)
			p := &product{segs: []Segment{{W: w}, {W: w}}}
			for s := range p.segs {
				p.divide(s, steps)
			}
			j := set.panelCols() * r.IntN((n+set.panelCols()-1)/set.panelCols())
			s := stretch{p.parts[r.IntN(len(p.parts)):], j, j + 1 + r.IntN(n-j)}
			s.end = min(n, (s.end+set.panelCols()-1)/set.panelCols()*set.panelCols())
			checkFetches(t, set, s, 1+r.IntN(8), 1+r.IntN(200), 1+r.IntN(40))
		}
	}
}

// checkFetches fetches a stretch during a number of tiles, each of some panels and steps.
func checkFetches(t *testing.T, set kernelSet, s stretch, panels, steps, tiles int) {
	t.Helper()
	fetches := tiles * panels * set.fetches(steps, false)
	want := map[uintptr]bool{}
	bytes := 0
	for i := range s.parts {
		p := &s.parts[i]
		if p.steps == 0 {
			continue
		}
		for j := s.j; j < s.end; j += set.panelCols() {
			width := set.padded(min(s.end-j, set.panelCols()))
			_, k := p.w.shape()
			at := uintptr(unsafe.Pointer(&p.w.panels[j*k+p.k0*width]))
			for b := uintptr(0); b < uintptr(4*width*p.steps); b += 4 {
				want[(at+b)/lineBytes] = true
			}
			bytes += 4 * width * p.steps
		}
	}
	var a ahead
	a.begin(set, s, fetches)
	got := map[uintptr]bool{}
	for range tiles {
		x := tile{panels: panels, k: steps}
		a.during(&x)
		if x.aheadStep > lineBytes {
			t.Fatalf("fetches are %d bytes apart", x.aheadStep)
		}
		if x.aheadStep == 0 {
			continue
		}
		for i := range panels * set.fetches(steps, false) {
			got[(x.ahead+uintptr(i)*x.aheadStep)/lineBytes] = true
		}
	}
	strange, missing := 0, 0
	for line := range got {
		if !want[line] {
			strange++
		}
	}
	for line := range want {
		if !got[line] {
			missing++
		}
	}
	// Distances are whole bytes, so the last fetches of a piece may go too far by a byte each.
	pieces := len(s.parts) * (1 + (s.end-s.j)/set.panelCols())
	if most := pieces * (2 + panels*steps/lineBytes); strange > most {
		t.Errorf("%v: %d of %d lines are not of the stretch, more than %d", set, strange, len(got), most)
	}
	_, k := s.parts[0].w.shape()
	if onePiece := len(s.parts) == 1 && s.parts[0].steps == k; onePiece && fetches*lineBytes >= bytes && missing > 0 {
		t.Errorf("%v: %d of %d lines are not fetched by %d fetches", set, missing, len(want), fetches)
	}
}

// Fetching ahead changes no bit.
func TestNextChangesNothing(t *testing.T) {
	r := newRand()
	for _, set := range ownSets() {
		for range 20 {
			x, w := random(r, 1+r.IntN(60), 1+r.IntN(90), 0), random(r, 1+r.IntN(200), 0, 0)
			w = random(r, w.Rows, x.Cols, 0)
			segs := []Segment{{X: x, W: newWeights(set, w, false)}}
			k := 1 + r.IntN(1300)
			n := 1 + r.IntN(100)
			one, other := newWeights(set, random(r, n, k, 0), false), newWeights(set, random(r, k, n, 0), true)
			narrow, foreign := newWeights(set, random(r, 3, k, 0), false), newWeights(blasSet, random(r, n, k, 0), false)
			want := New(x.Rows, w.Rows)
			mulSet(set, segs, Epilogue{}, want)
			for _, next := range [][]*Weights{{one}, {one, other}, {other}, {narrow}, {one, narrow}, {foreign}, {segs[0].W}} {
				y := New(x.Rows, w.Rows)
				mulSet(set, segs, Epilogue{Next: next}, y)
				equalBits(t, set.String(), y, want)
			}
		}
	}
}

// A thread fetches during a share what it computes next: the following share of the caller, the one
// before of a helper, and nothing beyond the last one, unless another product is known to follow.
func TestNextShareIsFetched(t *testing.T) {
	r := newRand()
	w := NewWeights(random(r, 2048, 64, 0))
	for _, divided := range []bool{false, true} {
		p := &product{set: w.set, segs: []Segment{{X: random(r, 32, 64, 0), W: w}}, y: New(32, 2048), grid: grid{8, 1}}
		p.ep.Threads = NewThreads(2)
		p.plan(new(workspace))
		if p.divided = divided; divided {
			p.parts = append(p.parts, p.parts[0])
		}
		for i, next := range []int{1, 2, 3, -1, -1, 4, 5, 6} {
			got := p.nextOf(i)
			if next < 0 {
				if got.parts != nil {
					t.Errorf("divided %v, share %d: fetches columns from %d on of nothing", divided, i, got.j)
				}
				continue
			}
			want := p.grid.share(next, p.set.panelCols(), 2048, p.tiles)
			if len(got.parts) != 1 || got.j != want.j || got.end <= got.j || got.end > want.end {
				t.Errorf("divided %v, share %d: fetches %d parts of columns %d to %d, and not of the share from %d to %d",
					divided, i, len(got.parts), got.j, got.end, want.j, want.end)
			}
		}
	}
}
