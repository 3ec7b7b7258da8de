package lower

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest/property"
)

func drawBox(t *rapid.T) box {
	b := box{Rect: drawRect(t, "rect"), t0: rapid.Int32Range(0, 9).Draw(t, "t0")}
	if b.empty() {
		b.Rect = Rect{b.R0, b.R0 + 1, b.C0, b.C0 + 1}
	}
	b.t1 = rapid.Int32Range(b.t0, 9).Draw(t, "t1")
	return b
}

// TestBoxForest holds two trees against lists, under insertions, removals and searches.
func TestBoxForest(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		var f boxForest
		var roots [2]int32
		var lists [2][]int32
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			k := rapid.IntRange(0, 1).Draw(t, "tree")
			if n := len(lists[k]); n > 0 && rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
				i := rapid.IntRange(0, n-1).Draw(t, "which")
				roots[k] = f.remove(roots[k], lists[k][i])
				f.release(lists[k][i])
				lists[k] = slices.Delete(lists[k], i, i+1)
			} else {
				o := occupation{drawBox(t), rapid.Int32Range(0, 3).Draw(t, "root")}
				id := f.add(o, cellRef{})
				lists[k] = append(lists[k], id)
				roots[k] = f.insert(roots[k], id)
			}
			checkTree(t, &f, roots[k], lists[k])
			o := occupation{drawBox(t), rapid.Int32Range(0, 3).Draw(t, "root")}
			clash := slices.IndexFunc(lists[k], func(n int32) bool { return f.nodes[n].clashes(&o) })
			if n := f.clash(roots[k], &o); (n != 0) != (clash >= 0) || n != 0 && !f.nodes[n].clashes(&o) {
				t.Fatalf("clash found %d, the list has number %d", n, clash)
			}
			var want []int32
			for _, n := range lists[k] {
				if f.nodes[n].overlaps(&o.box) {
					want = append(want, n)
				}
			}
			got := f.appendOverlapping(nil, roots[k], &o.box)
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("overlapping are %v, want %v", got, want)
			}
		}
		f.releaseTree(roots[0])
		for range lists[0] { // the nodes are used again
			if n := f.add(occupation{}, cellRef{}); !slices.Contains(lists[0], n) && int(n) == len(f.nodes)-1 {
				t.Fatalf("node %d is new, though there are free ones", n)
			}
		}
	})
}

// checkTree checks the order of a tree, the ranks and the boxes, and that it holds what the list
// holds.
func checkTree(t *rapid.T, f *boxForest, root int32, list []int32) {
	var walk func(n int32) []int32
	walk = func(n int32) []int32 {
		if n == 0 {
			return nil
		}
		p := f.nodes[n]
		left, right := walk(p.left), walk(p.right)
		all := p.box
		for _, k := range [2]int32{p.left, p.right} {
			if k != 0 {
				all.grow(&f.nodes[k].all)
				if f.nodes[k].rank > p.rank {
					t.Fatalf("node %d is above node %d, which has the larger rank", n, k)
				}
			}
		}
		if all != p.all {
			t.Fatalf("node %d: the box around its tree is %v, want %v", n, p.all, all)
		}
		return append(append(left, n), right...)
	}
	got := walk(root)
	for i := 1; i < len(got); i++ {
		if !f.before(got[i-1], got[i]) {
			t.Fatalf("node %d is before node %d", got[i-1], got[i])
		}
	}
	want := slices.Sorted(slices.Values(list))
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("the tree holds %v, want %v", got, want)
	}
}

// TestBoxForestDepth: a tree stays flat, in any order of insertions.
func TestBoxForestDepth(t *testing.T) {
	var f boxForest
	var depth func(n int32) int
	depth = func(n int32) int {
		if n == 0 {
			return 0
		}
		return 1 + max(depth(f.nodes[n].left), depth(f.nodes[n].right))
	}
	root := int32(0)
	for i := range int32(10000) {
		root = f.insert(root, f.add(occupation{box{Rect{i, i + 1, 0, 1}, i, i}, i}, cellRef{}))
	}
	if d := depth(root); d > 50 {
		t.Errorf("a tree of 10000 nodes is %d deep", d)
	}
}
