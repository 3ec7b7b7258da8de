package nnet3pass

import (
	"context"

	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// storagePass makes a pass that works on the planned storage. It does nothing to a graph that has
// none. change returns how many things it changed, and what says which: a noun in the plural.
// Bisection allows or forbids all of it at once, since the graph does not change.
func storagePass(name, doc, what string, change func(s *lower.Storage) int) rewrite.GraphRewriter {
	return rewrite.Global{Name: name, Doc: doc, Fn: func(_ context.Context, h *rewrite.Handle) error {
		s, ok := lower.StorageOf(h.Graph())
		if !ok {
			return nil
		}
		_, err := h.Whole("", func() error {
			before, rec := s.Peak(), h.Recorder()
			n := change(s)
			rec.Changed(n)
			rec.Set("nb_"+what, float64(n), "")
			rec.Set("peak_before", float64(before), "B")
			rec.Set("peak_after", float64(s.Peak()), "B")
			return nil
		})
		return err
	}}
}

// planStorage orders the computation, gives every value a matrix of its own, and then applies what
// the in-place passes permitted. From here on the graph is fixed.
func planStorage() rewrite.GraphRewriter {
	return rewrite.Global{Name: "plan_storage", Doc: "schedules the computation, gives every value a place, and fixes the graph", Fn: func(_ context.Context, h *rewrite.Handle) error {
		p, ok := lower.ProgramOf(h.Graph())
		if !ok {
			return nil
		}
		_, err := h.Whole("", func() error {
			s, err := lower.PlanStorage(p)
			if err != nil {
				return err
			}
			// What the in-place passes permitted is done first: places that ops overwrite are a
			// demand of the graph, and the storage passes fit the rest around them.
			h.Recorder().Set("nb_in_place", float64(s.PlaceInPlace()), "")
			h.Recorder().Set("peak_after", float64(s.Peak()), "B")
			return nil
		})
		return err
	}}
}

// storagePasses returns the passes that refine a planned storage, in their order.
func storagePasses() []rewrite.GraphRewriter {
	return []rewrite.GraphRewriter{
		storagePass("extend_matrices", "lets a matrix grow, so that values can share it although neither contains the other", "matrices",
			func(s *lower.Storage) int {
				s.Extend = true
				_, growable, _ := s.Counts()
				return growable
			}),
		// The first term of every assembled value is such an addition.
		storagePass("convert_addition", "copies the first value written to a place instead of adding it to zeros", "values",
			func(s *lower.Storage) int {
				s.Assign = true
				_, _, sums := s.Counts()
				return sums
			}),
		storagePass("remove_assignments", "computes the parts of an assembled value in place", "terms", (*lower.Storage).PlaceTerms),
		storagePass("initialize_undefined", "does not set to zero what is written before it is read", "matrices",
			func(s *lower.Storage) int {
				s.LeaveUndefined = true
				allocated, _, _ := s.Counts()
				return allocated
			}),
		storagePass("move_sizing_commands", "allocates right before the first use and frees right after the last", "matrices",
			func(s *lower.Storage) int {
				s.MoveSizing = true
				allocated, _, _ := s.Counts()
				return allocated
			}),
		// Joining matrices comes last, since it fixes their sizes.
		storagePass("allocate_from_other", "a matrix takes over the memory of one that is no longer needed", "matrices", (*lower.Storage).Reuse),
		storagePass("pack_matrices", "matrices of equal width or height that live at the same time are allocated as one", "matrices", (*lower.Storage).Pack),
	}
}
