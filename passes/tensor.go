package passes

import (
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
)

// tagTensor marks what concerns tensors.
const tagTensor = "tensor"

// tensor adds the passes on tensors. Positions are Theano's, except that canonicalize, stabilize and so on are shared with others.
func (s *standard) tensor() {
	stabilize := optdb.NewEquilibriumDB("stabilize")
	uncanonicalize := optdb.NewEquilibriumDB("uncanonicalize")
	useless := optdb.NewTopoDB("useless")
	s.group(1.5, "replaces expressions by others that neither overflow nor lose digits", stabilize, fastRun)
	s.group(3, "undoes what costs more than what the user wrote", uncanonicalize, fastRun)
	s.errs = append(s.errs, s.db.Add(optdb.Entry{Name: useless.Name(), Doc: "leaves out what does nothing, once, before anything else", DB: useless, Position: 0.6, Tags: []string{fastRun, fastCompile}}))

	s.localTensor(s.canonicalize, tensorpass.Canonicalize, fastRun, fastCompile)
	s.localTensor(stabilize, tensorpass.Stabilize, fastRun)
	s.localTensor(s.specialize, tensorpass.Specialize, fastRun)
	s.localTensor(uncanonicalize, tensorpass.Uncanonicalize, fastRun)
	s.localTensor(useless, tensorpass.Useless, fastRun, fastCompile)

	merge := func(position float64, name, doc string) {
		s.onTensors(position, name, doc, new(rewrite.Merge), fastRun, fastCompile, "merge")
	}
	s.onTensors(0.1, "ShapeOpt", "", tensorpass.Pass("ShapeOpt"), fastRun, fastCompile)
	s.onTensors(0.5, "pre_local_logsoftmax_grad", "", tensorpass.Pass("pre_local_logsoftmax_grad"), fastRun, tensorpass.UnsafeNaN)
	merge(0.65, "merge1.1", "the same computation twice becomes one, after what was useless")
	s.onTensors(0.99, "pre_local_IncSubtensor_serialize", "", tensorpass.Pass("pre_local_IncSubtensor_serialize"), fastRun)
	s.errs = append(s.errs, s.canonicalize.Add(optdb.Entry{Name: "MergeOptimizer", Doc: "the same computation twice becomes one, in every pass", Cleanup: true,
		Rewriter: tensorpass.OnlyTensors(new(rewrite.Merge)), Tags: []string{fastRun, fastCompile, tagTensor, "merge"}}))
	merge(1.2, "merge1.2", "the same computation twice becomes one, after canonicalize")
	s.onTensors(1.51, "local_fill_to_alloc", "", tensorpass.Pass("local_fill_to_alloc"), fastRun)
	s.onTensors(1.52, "local_elemwise_alloc", "", tensorpass.Pass("local_elemwise_alloc"), fastRun)
	s.blas()
	s.onTensors(2.01, "crossentropy_to_crossentropy_with_softmax", "", tensorpass.Pass("crossentropy_to_crossentropy_with_softmax"), fastRun)
	s.onTensors(48, "add_mul_fusion", "", tensorpass.Pass("add_mul_fusion"), fastRun)
	s.onTensors(48.6, "local_pow_specialize_device", "", tensorpass.Pass("local_pow_specialize_device"), fastRun, "fusion")
	s.fusion()
	s.onTensors(50.1, "local_inplace_setsubtensor", "", tensorpass.Pass("local_inplace_setsubtensor"), fastRun, inplace)
	s.onTensors(50.2, "InplaceBlasOpt", "", tensorpass.Pass("InplaceBlasOpt"), fastRun, inplace)
	s.onTensors(75, "inplace_elemwise_optimizer", "", tensorpass.Pass("inplace_elemwise_optimizer"), fastRun, inplace)
}

// localTensor adds the local rewrites of a group to a database.
func (s *standard) localTensor(db interface {
	Register(name string, rewriterOrDB any, tags ...string) error
}, group tensorpass.Group, tags ...string) {
	for _, l := range tensorpass.In(group) {
		all := append(append([]string{tagTensor}, tags...), l.Tags...)
		s.errs = append(s.errs, db.Register(rewrite.Describe(l.Rule).Name, l.Rule, all...))
	}
}

// onTensors adds an entry that concerns graphs of tensors only. doc may be empty where the rewriter documents itself.
func (s *standard) onTensors(position float64, name, doc string, r rewrite.GraphRewriter, tags ...string) {
	s.entry(position, name, doc, tensorpass.OnlyTensors(r), append(tags, tagTensor)...)
}

// blas adds the passes that make products of matrices calls of the BLAS.
func (s *standard) blas() {
	db := optdb.NewSequenceDB("BlasOpt")
	for _, e := range []struct {
		position float64
		name     string
		rewriter rewrite.GraphRewriter
	}{
		{0, "local_dot_to_dot22", tensorpass.Pass("local_dot_to_dot22")},
		{10, "gemm_optimizer", tensorpass.Pass("gemm_optimizer")},
		{11, "local_dot22_to_dot22scalar", tensorpass.Pass("local_dot22_to_dot22scalar")},
		{15, "local_gemm_to_gemv", tensorpass.Pass("local_gemm_to_gemv")},
		{20, "use_c_blas", tensorpass.Pass("use_c_blas")},
		{30, "use_scipy_ger", tensorpass.Pass("use_scipy_ger")},
	} {
		s.errs = append(s.errs, db.Register(e.name, tensorpass.OnlyTensors(e.rewriter), e.position, fastRun, fastCompile, tagTensor))
	}
	s.errs = append(s.errs, s.db.Add(optdb.Entry{Name: db.Name(), Doc: "makes products of matrices calls of the BLAS", DB: db, Position: 1.7, Tags: []string{fastRun, fastCompile, tagTensor}}))
}

// fusion adds the passes that make one op of several element-wise ones.
func (s *standard) fusion() {
	db := optdb.NewSequenceDB("elemwise_fusion")
	s.errs = append(s.errs,
		db.Register("local_add_mul_fusion", tensorpass.OnlyTensors(tensorpass.Pass("local_add_mul_fusion")), 0, fastRun, "fusion", tagTensor),
		db.Register("composite_elemwise_fusion", tensorpass.OnlyTensors(tensorpass.Pass("composite_elemwise_fusion")), 1, fastRun, "fusion", tagTensor),
		s.db.Add(optdb.Entry{Name: db.Name(), Doc: "makes one op of several element-wise ones, which goes through memory once", DB: db, Position: 49, Tags: []string{fastRun, "fusion", tagTensor}}))
}
