package nnet3pass

import (
	"context"

	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// storagePass makes a pass that works on the planned storage, and says how many things it changed. Graphs without one, those of other
// languages among them, are left alone. What it decides is allowed or forbidden as a whole: nothing of it is a rewrite of the graph.
func storagePass(name, doc string, change func(s *lower.Storage) int) rewrite.GraphRewriter {
	return rewrite.Global{Name: name, Doc: doc, Fn: func(_ context.Context, h *rewrite.Handle) error {
		s, ok := lower.StorageOf(h.Graph())
		if !ok {
			return nil
		}
		_, err := h.Whole("", func() error {
			before, rec := s.Peak(), h.Recorder()
			n := change(s)
			rec.Changed(n)
			rec.Set("nb_changed", float64(n), "")
			rec.Set("peak_before", float64(before), "B")
			rec.Set("peak_after", float64(s.Peak()), "B")
			return nil
		})
		return err
	}}
}

// PlanStorage orders the computation and gives every value a matrix of its own, then lets what the in-place passes permitted
// take effect. From here on the graph is fixed.
func PlanStorage() rewrite.GraphRewriter {
	return rewrite.Global{Name: "plan_storage", Doc: "orders the computation, gives every value a place, and fixes the graph", Fn: func(_ context.Context, h *rewrite.Handle) error {
		p, ok := lower.ProgramOf(h.Graph())
		if !ok {
			return nil
		}
		_, err := h.Whole("", func() error {
			s, err := lower.PlanStorage(p)
			if err != nil {
				return err
			}
			h.Recorder().Set("nb_in_place", float64(s.PlaceInPlace()), "")
			h.Recorder().Set("peak_after", float64(s.Peak()), "B")
			return nil
		})
		return err
	}}
}

// ExtendMatrices permits matrices to be larger than the values they were made for.
func ExtendMatrices() rewrite.GraphRewriter {
	return storagePass("extend_matrices", "lets a matrix grow, so that values that are no parts of each other can share it",
		func(s *lower.Storage) int {
			s.Extend = true
			return 1
		})
}

// RemoveAssignments lets the parts of an assembled value be made where they are wanted, so that nothing needs to be copied.
func RemoveAssignments() rewrite.GraphRewriter {
	return storagePass("remove_assignments", "makes the parts of an assembled value in the place where they are wanted", (*lower.Storage).PlaceTerms)
}

// ConvertAddition turns additions to zeros into copies.
func ConvertAddition() rewrite.GraphRewriter {
	return storagePass("convert_addition", "copies what is the first to be written to a place, instead of adding it to zeros",
		func(s *lower.Storage) int {
			s.Assign = true
			return 1
		})
}

// AllocateFromOther lets matrices take over the memory of others whose life is over.
func AllocateFromOther() rewrite.GraphRewriter {
	return storagePass("allocate_from_other", "a matrix takes over the memory of one that is not needed any more",
		(*lower.Storage).Reuse)
}

// PackMatrices lets matrices that are in use at the same time be one.
func PackMatrices() rewrite.GraphRewriter {
	return storagePass("pack_matrices", "matrices of equal width or height that live at the same time are allocated as one",
		(*lower.Storage).Pack)
}

// InitializeUndefined leaves matrices undefined that are written before they are read.
func InitializeUndefined() rewrite.GraphRewriter {
	return storagePass("initialize_undefined", "what is written before it is read is not set to zero first",
		func(s *lower.Storage) int {
			s.LeaveUndefined = true
			return 1
		})
}

// MoveSizingCommands allocates late and frees early.
func MoveSizingCommands() rewrite.GraphRewriter {
	return storagePass("move_sizing_commands", "allocates right before the first use and frees right after the last",
		func(s *lower.Storage) int {
			s.MoveSizing = true
			return 1
		})
}
