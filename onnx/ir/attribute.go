package ir

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/onnx"
)

// attributeTypes are the types of attributes of ONNX's own operators that have one in all operators and versions.
var attributeTypes = func() map[string]onnx.AttributeType {
	byName := make(map[string]onnx.AttributeType)
	for t, names := range map[onnx.AttributeType]string{
		onnx.AttributeInt: `align_corners allowzero antialias axis batch_axis batch_dims block_size blocksize broadcast ceil_mode center_point_box
			count_include_pad detect_negative detect_positive dtype end exclude_outside exclusive fmod group hidden_size ignore_index interleaved inverse
			is_case_sensitive is_causal is_test k keepdims kv_num_heads largest layout linear_before_reset max_gram_length max_skip_count maxsplit
			min_gram_length new_axis noop_with_empty_axes num_groups num_heads num_outputs num_scan_inputs offset_group onesided output_datatype output_dtype
			output_height output_width periodic q_num_heads qk_matmul_output_mode reverse rotary_embedding_dim sample_size sampling_ratio saturate
			select_last_index size softmax_precision sorted spatial start stash_type storage_order time_axis training_mode transA transB upper`,
		onnx.AttributeFloat: `alpha beta bias clip cubic_coeff_a epsilon extrapolation_value gamma height_scale high lambd low max mean min momentum ratio scale
			softcap spatial_scale width_scale`,
		onnx.AttributeString: `approximate auto_pad case_change_action coordinate_transformation_mode delimiter direction equation
			keep_aspect_ratio_policy locale mode nearest_mode padding_mode pattern reduction round_mode`,
		onnx.AttributeInts: `axes dilations directions ends kernel_shape ngram_counts ngram_indexes output_padding output_shape paddings pads perm pool_int64s
			pooled_shape scan_input_axes scan_input_directions scan_output_axes scan_output_directions shape split starts strides`,
		onnx.AttributeFloats:  "activation_alpha activation_beta scales weights",
		onnx.AttributeStrings: "activations pool_strings stopwords",
	} {
		for _, name := range strings.Fields(names) {
			byName[name] = t
		}
	}
	return byName
}()

// truths are attributes that are 0 or 1. Some programs take other numbers for 1, and ONNX Runtime does not.
var truths = strings.Fields("allowzero ceil_mode center_point_box exclusive fmod keepdims largest layout noop_with_empty_axes reverse")

// words are what an attribute may be, where nothing else asks.
var words = map[string]string{
	"BitShift direction": "LEFT RIGHT", "DepthToSpace mode": "DCR CRD", "Gelu approximate": "none tanh",
	"GRU direction": directions, "LSTM direction": directions, "RNN direction": directions,
	"NegativeLogLikelihoodLoss reduction": reductions, "SoftmaxCrossEntropyLoss reduction": reductions,
}

const (
	directions = "forward reverse bidirectional"
	reductions = "none mean sum"
)

// needed are attributes without a default, where nothing else asks.
var needed = map[string]string{"BitShift": "direction", "ConcatFromSequence": "axis", "LRN": "size"}

// checkAttributes fails if an attribute of an operator of ONNX's own is missing, or none that it may have.
func (c *Call) checkAttributes() {
	if c.Domain != "" {
		return
	}
	for _, a := range c.Attributes {
		if t := attributeTypes[a.Name]; t != a.Type && t != onnx.AttributeUndefined && a.Type != onnx.AttributeUndefined {
			c.Fail("its attribute %s is of type %v, and should be of type %v", a.Name, a.Type, t)
		}
		if a.Int&^1 != 0 && slices.Contains(truths, a.Name) {
			c.Fail("its attribute %s is %d, and should be 0 or 1", a.Name, a.Int)
		}
		if a.Type == onnx.AttributeString {
			if list := words[c.Op.Type+" "+a.Name]; list != "" && !slices.Contains(strings.Fields(list), string(a.String)) {
				c.Fail("its attribute %s is %.100q, and should be one of %s", a.Name, a.String, list)
			}
		}
	}
	if name := needed[c.Op.Type]; name != "" && c.Attribute(name) == nil {
		c.Fail("it has no attribute %s", name)
	}
}
