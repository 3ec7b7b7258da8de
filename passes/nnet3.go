package passes

import (
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/rewrite"
)

// nnet3 adds the passes on nnet3 values.
func (s *standard) nnet3() {
	const (
		nnet3   = "nnet3"
		fusion  = "fusion"  // makes a component that no network has
		storage = "storage" // decides where values live

		// Kaldi lets two values be one matrix on these two conditions: that of the value copied from stays, or that of the
		// value copied to. Here a matrix may be larger than either, so there is one condition, under both names.
		leftMerge, rightMerge = "allow_left_merge", "allow_right_merge"
	)
	s.entry(0.6, "limit_derivative_times", "", nnet3pass.LimitDerivativeTimes(), fastRun, fastCompile, nnet3)
	s.entry(0.7, "consolidate_model_update", "", nnet3pass.ConsolidateModelUpdate(), fastRun, nnet3, reassoc)

	c := s.canonicalize
	s.rule(c, nnet3pass.RemoveIdentity(), fastRun, fastCompile, nnet3)
	s.rule(c, nnet3pass.RemoveIdentityBackward(), fastRun, fastCompile, nnet3)
	s.rule(c, nnet3pass.OptimizeRowOps(), fastRun, fastCompile, nnet3)
	s.rule(c, nnet3pass.SnipRowOps(), fastRun, fastCompile, nnet3)
	s.rule(c, nnet3pass.SplitRowOps(), fastRun, fastCompile, nnet3)
	s.rule(c, nnet3pass.MergeTerms(), fastRun, fastCompile, nnet3)
	s.rule(c, nnet3pass.DropZeros(), fastRun, fastCompile, nnet3)
	s.rule(c, nnet3pass.UselessAssemble(), fastRun, fastCompile, nnet3)
	s.rule(c, nnet3pass.ThroughBlock(), fastRun, fastCompile, nnet3)
	s.rule(c, nnet3pass.BlockOfAssemble(), fastRun, fastCompile, nnet3)
	s.rule(c, nnet3pass.InlineAssemble(), fastRun, fastCompile, nnet3, reassoc)
	s.rule(c, nnet3pass.MemoryCompression(), fastRun, nnet3)

	s.entry(1.8, "local_multiply_out", "", rewrite.In2Out("local_multiply_out", nnet3pass.MultiplyOut(nnet3pass.LeastProduct)), fastRun, nnet3, fusion, reassoc)
	s.entry(1.9, "split_recurrent_affine", "", nnet3pass.SplitRecurrentAffine(nnet3pass.LeastSplit), fastRun, nnet3, fusion)

	p := s.specialize
	s.rule(p, nnet3pass.MultiplyOnce(nnet3pass.LeastProduct), fastRun, nnet3, fusion, reassoc)
	s.rule(p, nnet3pass.GroupColumns(), fastRun, nnet3, fusion, reassoc)
	s.rule(p, nnet3pass.FuseEpilogue(), fastRun, nnet3, fusion)
	s.rule(p, nnet3pass.FuseResidual(), fastRun, nnet3, fusion)
	s.rule(p, nnet3pass.Overwrite(), fastRun, nnet3, fusion)
	s.rule(p, nnet3pass.OverwriteBackward(), fastRun, nnet3, fusion)
	s.rule(p, nnet3pass.SpliceProduct(), fastRun, nnet3, fusion)
	s.rule(p, nnet3pass.LiftRows(), fastRun, nnet3)
	s.rule(p, nnet3pass.ReadRowsInPlace(), fastRun, nnet3)
	s.rule(p, nnet3pass.Accumulate(), fastRun, nnet3, reassoc)

	s.entry(48, "trim_inputs", "", nnet3pass.TrimInputs(), fastRun, nnet3)
	s.entry(50, "propagate_in_place", "", nnet3pass.PropagateInPlace(), fastRun, inplace, nnet3, leftMerge, rightMerge)
	s.entry(50.1, "backprop_in_place", "", nnet3pass.BackpropInPlace(), fastRun, inplace, nnet3, leftMerge, rightMerge)

	// The graph is fixed from here on. The order of the storage passes matters: to extend is a permission that
	// remove_assignments uses; memory can be taken over only when it is known what shares a matrix; and what is packed into
	// one matrix is never free before all of it is.
	s.entry(60, "plan_storage", "", nnet3pass.PlanStorage(), fastRun, fastCompile, storage, nnet3)
	s.entry(61, "extend_matrices", "", nnet3pass.ExtendMatrices(), fastRun, storage, nnet3)
	s.entry(61.5, "convert_addition", "", nnet3pass.ConvertAddition(), fastRun, fastCompile, storage, nnet3)
	s.entry(62, "remove_assignments", "", nnet3pass.RemoveAssignments(), fastRun, storage, nnet3, leftMerge, rightMerge)
	s.entry(63, "initialize_undefined", "", nnet3pass.InitializeUndefined(), fastRun, fastCompile, storage, nnet3)
	s.entry(64, "move_sizing_commands", "", nnet3pass.MoveSizingCommands(), fastRun, fastCompile, storage, nnet3)
	s.entry(65, "allocate_from_other", "", nnet3pass.AllocateFromOther(), fastRun, storage, nnet3)
	s.entry(66, "pack_matrices", "", nnet3pass.PackMatrices(), fastRun, storage, nnet3)
}
