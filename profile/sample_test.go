package profile_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/profile"
)

// sample returns the record behind testdata/theano.txt, the profile that
// Theano's documentation prints. Digits that the text does not show are chosen
// such that its own sums come out.
func sample(t testing.TB) *profile.Record {
	t.Helper()
	root := &profile.Record{
		Name: "OPT_FAST_RUN", Class: profile.ClassSequence, Time: seconds("1.152"),
		Validate: seconds("0.028"), Callback: seconds("0.131"),
		NodesBefore: 123, NodesAfter: 50, NodesMax: 123,
	}
	root.Children = []*profile.Record{
		sampleCanonicalize(t), sampleBlas(), sampleSpecialize(t), sampleFusion(),
		{
			Name: "inplace_elemwise_optimizer", Class: profile.ClassFromFunction, Index: 30,
			Time: seconds("0.090089"), Validate: seconds("0.019"),
		},
	}
	return root
}

func sampleCanonicalize(t testing.TB) *profile.Record {
	r := &profile.Record{
		Name: "canonicalize", Class: profile.ClassEquilibrium, Index: 4, Time: seconds("0.751816"),
		Validate: seconds("0.004"), Toposort: seconds("0.029"), NodesBefore: 108, NodesAfter: 81, NodesMax: 117,
	}
	// time applied global toposort nodes: rule count ...
	r.Passes = passes(t, `
		0.050 27 0.0002 0.002 108: local_dimshuffle_lift 9 local_upcast_elemwise_constant_inputs 5 local_shape_to_shape_i 3 local_fill_sink 3 local_fill_to_alloc 2 local_neg_to_mul 2 local_lift_transpose_through_dot 1 local_subtensor_lift 1 local_sum_all_to_none 1
		0.288 26 0.002 0.002 117: local_dimshuffle_lift 8 local_fill_sink 4 constant_folding 4 local_useless_elemwise 3 local_subtensor_make_vector 3 local_neg_to_mul 1 MergeOptimizer 1 local_subtensor_lift 1 local_mul_canonizer 1
		0.044 13 0.002 0.003 96: constant_folding 4 local_dimshuffle_lift 3 local_fill_sink 3 local_useless_elemwise 1 local_fill_to_alloc 1 MergeOptimizer 1
		0.045 11 0.0002 0.002 91: constant_folding 3 local_fill_to_alloc 2 local_dimshuffle_lift 2 local_mul_canonizer 2 MergeOptimizer 1 local_fill_sink 1
		0.035 8 0.002 0.002 93: local_fill_sink 3 local_dimshuffle_lift 2 local_fill_to_alloc 1 MergeOptimizer 1 constant_folding 1
		0.035 6 0.0002 0.002 88: local_fill_sink 2 local_dimshuffle_lift 2 local_fill_to_alloc 1 local_mul_canonizer 1
		0.038 10 0.001 0.002 95: local_fill_sink 3 local_dimshuffle_lift 3 constant_folding 2 local_fill_to_alloc 1 MergeOptimizer 1
		0.032 5 0.001 0.002 91: local_fill_sink 3 MergeOptimizer 1 local_dimshuffle_lift 1
		0.034 5 0.0002 0.002 92: local_fill_sink 3 MergeOptimizer 1 local_greedy_distributor 1
		0.031 6 0.001 0.002 90: local_fill_sink 2 local_fill_to_alloc 1 MergeOptimizer 1 local_dimshuffle_lift 1 local_greedy_distributor 1
		0.032 5 0 0.002 89: local_dimshuffle_lift 2 local_fill_to_alloc 1 MergeOptimizer 1 local_fill_sink 1
		0.030 5 0 0.002 88: local_dimshuffle_lift 2 local_fill_to_alloc 1 MergeOptimizer 1 constant_folding 1
		0.026 1 0 0.003 81: MergeOptimizer 1
		0.031 0 0 0.003 81:`)
	// time applied created name
	r.Rules = rules(t, `
		0.2626 15 0 constant_folding
		0.096 2 14 local_greedy_distributor
		0.0656 4 19 local_mul_canonizer
		0.046 28 57 local_fill_sink
		0.042 35 78 local_dimshuffle_lift
		0.018 5 15 local_upcast_elemwise_constant_inputs
		0.010 11 4 MergeOptimizer global
		0.009 4 0 local_useless_elemwise
		0.005 11 2 local_fill_to_alloc
		0.004 3 6 local_neg_to_mul
		0.002 1 3 local_lift_transpose_through_dot
		0.002 3 4 local_shape_to_shape_i
		0.002 2 4 local_subtensor_lift
		0.001 3 0 local_subtensor_make_vector
		0.001 1 1 local_sum_all_to_none
		0.050 0 0 local_add_canonizer
		0.018 0 0 local_mul_zero
		0.016 0 0 local_one_minus_erf
		0.010 0 0 local_func_inv
		0.006 0 0 local_0_dot_x
		0.005 0 0 local_track_shape_i
		0.004 0 0 local_mul_switch_sink
		0.004 0 0 local_fill_cut
		0.004 0 0 local_one_minus_erf2
		0.003 0 0 local_remove_switch_const_cond
		0.003 0 0 local_cast_cast
		0.002 0 0 local_IncSubtensor_serialize
		0.001 0 0 local_sum_div_dimshuffle
		0.001 0 0 local_div_switch_sink
		0.001 0 0 local_dimshuffle_no_inplace_at_canonicalize
		0.001 0 0 local_cut_useless_reduce
		0.001 0 0 local_reduce_join
		0.0001 0 0 local_sum_sum
		0.0001 0 0 local_useless_alloc
		0.0001 0 0 local_reshape_chain
		0.0001 0 0 local_useless_subtensor
		0.0001 0 0 local_reshape_lift
		0.0001 0 0 local_flatten_lift
		0.0001 0 0 local_useless_slice
		0.0001 0 0 local_subtensor_of_alloc
		0.0001 0 0 local_subtensor_of_dot
		0.0001 0 0 local_subtensor_merge`)
	r.Rules = append(r.Rules, untimed(62-27)...)
	return r
}

func sampleSpecialize(t testing.TB) *profile.Record {
	r := &profile.Record{
		Name: "specialize", Class: profile.ClassEquilibrium, Index: 9, Time: seconds("0.031740"),
		NodesBefore: 80, NodesAfter: 78, NodesMax: 80,
	}
	r.Passes = passes(t, `
		0.017 6 0.002 0.0014 80: constant_folding 2 local_mul_to_sqr 1 local_elemwise_alloc 1 local_div_to_inv 1 local_mul_specialize 1
		0.014 0 0.002 0.0014 78:`)
	r.Rules = rules(t, `
		0.0034 1 1 local_mul_specialize
		0.0024 1 2 local_elemwise_alloc
		0.0023 2 0 constant_folding
		0.0012 1 1 local_div_to_inv
		0.0012 1 1 local_mul_to_sqr
		0.004 0 0 crossentropy_to_crossentropy_with_softmax_with_bias global
		0.002 0 0 local_one_minus_erf
		0.002 0 0 Elemwise{sub,no_inplace}(z, Elemwise{mul,no_inplace}(alpha subject to <function <lambda> at 0x7f475e4da050>, SparseDot(x, y))) -> Usmm{no_inplace}(Elemwise{neg,no_inplace}(alpha), x, y, z)
		0.002 0 0 local_add_specialize
		0.001 0 0 local_func_inv
		0.001 0 0 local_useless_elemwise
		0.001 0 0 local_abs_merge
		0.001 0 0 local_track_shape_i
		0.0001 0 0 local_one_minus_erf2
		0.0001 0 0 local_sum_mul_by_scalar
		0.0001 0 0 local_elemwise_sub_zeros
		0.0001 0 0 local_cast_cast
		0.0001 0 0 local_alloc_unary
		0.0001 0 0 Elemwise{log,no_inplace}(Softmax(x)) -> <function make_out_pattern at 0x7f47619a8410>(x)
		0.0001 0 0 local_sum_div_dimshuffle
		0.0001 0 0 local_sum_alloc
		0.0001 0 0 local_dimshuffle_lift
		0.0001 0 0 local_reduce_broadcastable
		0.0001 0 0 local_grad_log_erfc_neg
		0.0001 0 0 local_advanced_indexing_crossentropy_onehot
		0.0001 0 0 local_log_erfc
		0.0001 0 0 local_log1p
		0.0001 0 0 local_log_add
		0.0001 0 0 local_useless_alloc
		0.0001 0 0 local_neg_neg
		0.0001 0 0 local_neg_div_neg`)
	r.Rules = append(r.Rules, untimed(69-26)...)
	return r
}

func sampleFusion() *profile.Record {
	counters := func(iter, replacement, validate, callback, toposort float64) []profile.Counter {
		return []profile.Counter{
			{Name: "nb_iter", Value: iter},
			{Name: "nb_replacement", Value: replacement},
			{Name: "nb_inconsistency_replace"},
			{Name: "validate_time", Value: validate, Unit: "s"},
			{Name: "callback_time", Value: callback, Unit: "s"},
			{Name: "time_toposort", Value: toposort, Unit: "s"},
		}
	}
	return &profile.Record{
		Name: "elemwise_fusion", Class: profile.ClassSequence, Index: 13, Time: seconds("0.101733"),
		Callback: seconds("0.004"), NodesBefore: 78, NodesAfter: 50, NodesMax: 78,
		Children: []*profile.Record{
			{
				Name: "local_add_mul_fusion", Class: profile.ClassFusion, Index: 0, Time: seconds("0.006412"),
				Counters: counters(2, 3, 6.43730163574e-05, 0.000783205032349, 0.0035240650177),
			},
			{
				Name: "composite_elemwise_fusion", Class: profile.ClassFusion, Index: 1, Time: seconds("0.095307"),
				Counters: counters(3, 10, 0.000249624252319, 0.00316381454468, 0.00375390052795),
			},
		},
	}
}

func sampleBlas() *profile.Record {
	topo := func(name string, index int, time string, start, end, changed int, toposort, loop, callback float64) *profile.Record {
		return &profile.Record{
			Name: name, Class: profile.ClassTopo, Index: index, Time: seconds(time),
			NodesBefore: start, NodesAfter: end, NodesMax: start, Changed: changed,
			Counters: []profile.Counter{
				{Name: "init io_toposort", Value: toposort, Unit: "s"},
				{Name: "loop time", Value: loop, Unit: "s"},
				{Name: "callback_time", Value: callback, Unit: "s"},
			},
		}
	}
	return &profile.Record{
		Name: "BlasOpt", Class: profile.ClassSequence, Index: 8, Time: seconds("0.048993"),
		Callback: seconds("0.003"), NodesBefore: 81, NodesAfter: 80, NodesMax: 81,
		Children: []*profile.Record{
			topo("local_dot_to_dot22", 0, "0.004569", 81, 81, 5, 0.00139284133911, 0.00312399864197, 0.00172805786133),
			{
				Name: "gemm_optimizer", Class: profile.ClassGemm, Index: 1, Time: seconds("0.035997"),
				Counters: []profile.Counter{
					{Name: "nb_iter", Value: 2},
					{Name: "nb_replacement", Value: 2},
					{Name: "nb_replacement_didn_t_remove"},
					{Name: "nb_inconsistency_make"},
					{Name: "nb_inconsistency_replace"},
					{Name: "time_canonicalize", Value: 0.00720071792603, Unit: "s"},
					{Name: "time_factor_can", Value: 9.05990600586e-06, Unit: "s"},
					{Name: "time_factor_list", Value: 0.00128507614136, Unit: "s"},
					{Name: "time_toposort", Value: 0.00311398506165, Unit: "s"},
					{Name: "validate_time", Value: 4.60147857666e-05, Unit: "s"},
					{Name: "callback_time", Value: 0.00174236297607, Unit: "s"},
				},
			},
			topo("local_dot22_to_dot22scalar", 2, "0.002283", 80, 80, 0, 0.00171804428101, 0.000502109527588, 0),
			{
				Name: "local_gemm_to_gemv", Class: profile.ClassEquilibrium, Index: 3, Time: seconds("0.002257"),
				NodesBefore: 80, NodesAfter: 80, NodesMax: 80,
				Passes: []profile.Pass{{Time: seconds("0.002"), Toposort: seconds("0.001"), Nodes: 80}},
			},
			topo("use_c_blas", 4, "0.002227", 80, 80, 0, 0.0014750957489, 0.00068998336792, 0),
			topo("use_scipy_ger", 5, "0.001632", 80, 80, 0, 0.00138401985168, 0.000202178955078, 0),
		},
	}
}

func seconds(s string) time.Duration {
	d, err := time.ParseDuration(s + "s")
	if err != nil {
		panic(err)
	}
	return d
}

func passes(t testing.TB, text string) []profile.Pass {
	t.Helper()
	var list []profile.Pass
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		head, tail, _ := strings.Cut(line, ":")
		f := strings.Fields(head)
		p := profile.Pass{Time: seconds(f[0]), Global: seconds(f[2]), Toposort: seconds(f[3])}
		scan(t, f[1], &p.Applied)
		scan(t, f[4], &p.Nodes)
		for f = strings.Fields(tail); len(f) > 1; f = f[2:] {
			c := profile.RuleCount{Name: f[0]}
			scan(t, f[1], &c.Count)
			p.Rules = append(p.Rules, c)
		}
		list = append(list, p)
	}
	return list
}

func rules(t testing.TB, text string) []profile.RuleRecord {
	t.Helper()
	var list []profile.RuleRecord
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.SplitN(strings.TrimSpace(line), " ", 4)
		u := profile.RuleRecord{Time: seconds(f[0])}
		scan(t, f[1], &u.Applied)
		scan(t, f[2], &u.Created)
		u.Name, u.Global = strings.CutSuffix(f[3], " global")
		list = append(list, u)
	}
	return list
}

// untimed returns rules whose ops never occurred.
func untimed(n int) []profile.RuleRecord {
	list := make([]profile.RuleRecord, n)
	for i := range list {
		list[i].Name = fmt.Sprintf("untimed_%d", i)
	}
	return list
}

func scan(t testing.TB, text string, n *int) {
	t.Helper()
	if _, err := fmt.Sscan(text, n); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}

func readLines(t testing.TB, name string) []string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}
