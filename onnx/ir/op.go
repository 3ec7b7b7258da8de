package ir

import (
	"encoding/base64"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// An Op is what a node computes: an operator with its attributes. Ops are equal if their texts and their
// bodies are.
type Op struct {
	// Type is the name of the operator, and Domain that of its domain, empty for ONNX's own.
	Type, Domain, overload string
	// Attributes are those that the node has but for graphs, sorted by name.
	Attributes []*onnx.Attribute
	// Bodies are the graphs that the node holds, sorted by name. An If has none: see Import.
	Bodies []*Body
	// Outputs is how many results the node has.
	Outputs int
	// Legacy is a version of the domain if the operator had another meaning then than today. Rules
	// that name the operator do not mean such an op.
	Legacy int64

	operator *Operator // nil if it is unknown
	effect   bool
	derived  func() (text string, hash uint64)
}

// NewOp returns a new op with the exported fields of one: with several outputs, say, or of another domain than ONNX's own.
func (l *Operators) NewOp(op Op) *Op {
	l.complete(&op)
	return op.completed()
}

// complete sets what follows from the exported fields of an op.
func (l *Operators) complete(op *Op) {
	if op.Domain == "ai.onnx" {
		op.Domain = ""
	}
	op.operator = l.Lookup(op.Domain, op.Type)
	op.Outputs = max(op.Outputs, 1)
	slices.SortStableFunc(op.Attributes, func(a, b *onnx.Attribute) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(op.Bodies, func(a, b *Body) int { return strings.Compare(a.Name, b.Name) })
}

// completed returns a new op, whose text is made when somebody asks.
func (op Op) completed() *Op {
	p := &op
	// An op of which nothing is known may draw random numbers.
	p.effect = op.operator == nil || op.operator.Random || slices.ContainsFunc(op.Bodies, func(b *Body) bool { return effects(b.Graph) })
	p.derived = sync.OnceValues(p.derive)
	return p
}

// Operator returns what is known of the operator, or nil.
func (op *Op) Operator() *Operator { return op.operator }

// optionalOutputs are the operators with results that a node may leave out, and the first of these.
var optionalOutputs = map[string]int{
	"Dropout": 1, "MaxPool": 1, "LayerNormalization": 1, "SimplifiedLayerNormalization": 1, "LSTM": 0, "GRU": 0, "RNN": 0, "Unique": 1, "Attention": 1, "SoftmaxCrossEntropyLoss": 1, "BatchNormalization": 1,
}

// MayLeaveOut reports whether ONNX lets a node leave out result i.
func (op *Op) MayLeaveOut(i int) bool {
	if op.Domain == microsoft {
		// ONNX Runtime keeps keys in the results of a GroupQueryAttention, also if nobody else reads them.
		return i > 0 && (i > 2 || op.Type != "GroupQueryAttention") || op.Type == "DynamicQuantizeLSTM"
	}
	first, ok := optionalOutputs[op.Type]
	return ok && i >= first && op.Domain == "" && op.Legacy == 0 && (op.Type != "BatchNormalization" || op.Int("training_mode", 0) == 0)
}

// String returns the name with the attributes, such as Transpose{perm=[1,0]}. A number behind a slash
// is that of outputs, if there are several, and one behind @ the version of an old meaning.
func (op *Op) String() string {
	text, _ := op.derived()
	return text
}

// EqualOp reports whether other is the same op.
func (op *Op) EqualOp(other fgraph.Op) bool {
	o, ok := other.(*Op)
	return ok && (o == op || o.String() == op.String() && equalBodies(o.Bodies, op.Bodies))
}

var seed = maphash.MakeSeed()

// HashOp returns a hash that is consistent with EqualOp.
func (op *Op) HashOp() uint64 {
	_, hash := op.derived()
	return hash
}

func (op *Op) derive() (text string, hash uint64) {
	h := maphash.Hash{}
	h.SetSeed(seed)
	text = op.format()
	h.WriteString(text)
	for _, b := range op.Bodies {
		hashBody(&h, b)
	}
	return text, h.Sum64()
}

// Unmergeable reports whether two applies of the op to the same inputs may give different results: it
// draws random numbers, nothing is known of it, or it holds such an op. Such an apply is not merged
// with another one, doubled, folded, or moved into a loop or out of one.
func (op *Op) Unmergeable() bool { return op.effect }

// Commutes reports whether the order of the inputs does not matter.
func (op *Op) Commutes() bool { return op.operator != nil && op.operator.Commutes && op.Legacy == 0 }

// Name returns the domain and the type: Add, com.microsoft.Gelu.
func (op *Op) Name() string { return qualified(op.Domain, op.Type) }

func qualified(domain, typ string) string {
	if domain == "" || domain == "ai.onnx" {
		return typ
	}
	return domain + "." + typ
}

func (op *Op) format() string { return op.textWith(attributeText, bodyTexts(op.Bodies)) }

// textWith returns the text of the op with these texts of its attributes and bodies.
func (op *Op) textWith(attribute func(*onnx.Attribute) string, bodies []string) string {
	text := op.Name()
	if op.overload != "" {
		text += ":" + op.overload
	}
	if op.Outputs != 1 {
		text += "/" + strconv.Itoa(op.Outputs)
	}
	if op.Legacy != 0 {
		text += "@" + strconv.FormatInt(op.Legacy, 10)
	}
	parts := make([]string, 0, len(op.Attributes)+len(bodies))
	for _, a := range op.Attributes {
		parts = append(parts, a.Name+"="+attribute(a))
	}
	if parts = append(parts, bodies...); len(parts) > 0 {
		text += "{" + strings.Join(parts, ", ") + "}"
	}
	return text
}

func listText[T any](list []T, format func(T) string) string {
	return "[" + strings.Join(lists.Map(list, format), ",") + "]"
}

// attributeText returns the value of an attribute. What has no short form is the encoded message.
func attributeText(a *onnx.Attribute) string {
	switch a.Type {
	case onnx.AttributeInt:
		return strconv.FormatInt(a.Int, 10)
	case onnx.AttributeFloat:
		return floatText(a.Float)
	case onnx.AttributeString:
		return strconv.Quote(string(a.String))
	case onnx.AttributeInts:
		return "ints" + listText(a.Ints, func(n int64) string { return strconv.FormatInt(n, 10) })
	case onnx.AttributeFloats:
		return "floats" + listText(a.Floats, floatText)
	case onnx.AttributeStrings:
		return "strings" + listText(a.Strings, func(s []byte) string { return strconv.Quote(string(s)) })
	}
	var b strings.Builder
	_ = a.Write(&b) // a builder does not fail
	return "proto[" + base64.StdEncoding.EncodeToString([]byte(b.String())) + "]"
}

// floatText returns a float as text that can't be read as an integer.
func floatText(f float32) string {
	text := strconv.FormatFloat(float64(f), 'g', -1, 32)
	if f == float32(math.Trunc(float64(f))) && !strings.ContainsAny(text, ".eIN") {
		text += ".0"
	}
	return text
}

// ParseOp reads the text of an op without bodies.
func (l *Operators) ParseOp(text string) (*Op, error) { return l.parse(text, nil) }

// parse reads the text of an op. Bodies are read by a function of their names and values.
func (l *Operators) parse(text string, body func(name, value string) (*Body, error)) (*Op, error) {
	op, err := l.parseOp(text, body)
	if err != nil {
		return nil, fmt.Errorf("%.100q is no operator: %w", text, err)
	}
	return op, nil
}

func (l *Operators) parseOp(text string, body func(name, value string) (*Body, error)) (*Op, error) {
	var op Op
	// The text is name:overload/outputs@version{attributes}, so cuts from the back leave what is in front.
	name, attributes, braces := strings.Cut(text, "{")
	name, legacy, old := strings.Cut(name, "@")
	name, outputs, several := strings.Cut(name, "/")
	name, op.overload, _ = strings.Cut(name, ":")
	if dot := strings.LastIndex(name, "."); dot >= 0 {
		op.Domain, name = name[:dot], name[dot+1:]
	}
	op.Type = name
	if !isIdentifier(strings.ReplaceAll(name, "-", "_")) {
		return nil, fmt.Errorf("the name %q", name)
	}
	var err error
	if old {
		if op.Legacy, err = strconv.ParseInt(legacy, 10, 32); err != nil || op.Legacy <= 0 {
			return nil, fmt.Errorf("the version %q", legacy)
		}
	}
	if several {
		if op.Outputs, err = strconv.Atoi(outputs); err != nil || op.Outputs < 1 || op.Outputs > 1<<16 {
			return nil, fmt.Errorf("the number of outputs %q", outputs)
		}
	}
	if braces {
		if !strings.HasSuffix(attributes, "}") {
			return nil, fmt.Errorf("a brace is not closed")
		}
		var own []string
		for _, part := range split(strings.TrimSuffix(attributes, "}"), ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			if body == nil || !strings.HasPrefix(value, "graph") {
				own = append(own, part)
				continue
			}
			b, err := body(name, value)
			if err != nil {
				return nil, fmt.Errorf("the graph %s: %w", name, err)
			}
			op.Bodies = append(op.Bodies, b)
		}
		if op.Attributes, err = parseEach(own, parseNamed); err != nil {
			return nil, err
		}
	}
	return l.NewOp(op), nil
}

// ParseAttributes reads a list of attributes: axis=1, perm=ints[1,0], alpha=0.5, mode="linear".
func ParseAttributes(text string) ([]*onnx.Attribute, error) {
	return parseEach(split(text, ","), parseNamed)
}

func parseNamed(text string) (*onnx.Attribute, error) {
	name, value, ok := strings.Cut(strings.TrimSpace(text), "=")
	if !ok || name == "" {
		return nil, fmt.Errorf("%.100q is no attribute", text)
	}
	a, err := parseAttribute(value)
	if err != nil {
		return nil, fmt.Errorf("attribute %s: %w", name, err)
	}
	a.Name = name
	return a, nil
}

func parseAttribute(text string) (*onnx.Attribute, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Int("", n), nil
	}
	if s, err := strconv.Unquote(text); err == nil {
		return String("", s), nil
	}
	if f, err := strconv.ParseFloat(text, 32); err == nil {
		return Float("", float32(f)), nil
	}
	kind, list, ok := strings.Cut(text, "[")
	if !ok || !strings.HasSuffix(list, "]") {
		return nil, fmt.Errorf("%.100q is no value", text)
	}
	if list = strings.TrimSuffix(list, "]"); kind == "proto" {
		raw, err := base64.StdEncoding.DecodeString(list)
		if err != nil {
			return nil, err
		}
		return onnx.ParseAttribute(raw)
	}
	var parts []string
	if list != "" {
		parts = split(list, ",")
	}
	var err error
	a := new(onnx.Attribute)
	switch kind {
	case "ints", "":
		a.Type = onnx.AttributeInts
		a.Ints, err = parseEach(parts, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
	case "floats":
		a.Type = onnx.AttributeFloats
		a.Floats, err = parseEach(parts, func(s string) (float32, error) {
			f, err := strconv.ParseFloat(s, 32)
			return float32(f), err
		})
	case "strings":
		a.Type = onnx.AttributeStrings
		a.Strings, err = parseEach(parts, func(s string) ([]byte, error) {
			t, err := strconv.Unquote(s)
			return []byte(t), err
		})
	default:
		err = fmt.Errorf("%.100q is no value", text)
	}
	return a, err
}

// parseEach reads the parts of a list.
func parseEach[T any](parts []string, parse func(string) (T, error)) ([]T, error) {
	var list []T
	for _, p := range parts {
		x, err := parse(strings.TrimSpace(p))
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}

// Int returns an attribute.
func Int(name string, n int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeInt, Int: n}
}

// Ints returns an attribute.
func Ints(name string, list ...int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeInts, Ints: list}
}

// Float returns an attribute.
func Float(name string, f float32) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeFloat, Float: f}
}

// String returns an attribute.
func String(name, s string) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeString, String: []byte(s)}
}

// Attribute returns an attribute, or nil.
func (op *Op) Attribute(name string) *onnx.Attribute {
	for _, a := range op.Attributes {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Int returns an attribute, or otherwise if there is none.
func (op *Op) Int(name string, otherwise int64) int64 {
	if a := op.Attribute(name); a != nil {
		return a.Int
	}
	return otherwise
}

// Float returns an attribute, or otherwise if there is none.
func (op *Op) Float(name string, otherwise float32) float32 {
	if a := op.Attribute(name); a != nil {
		return a.Float
	}
	return otherwise
}

// Text returns an attribute, or otherwise if there is none.
func (op *Op) Text(name, otherwise string) string {
	if a := op.Attribute(name); a != nil {
		return string(a.String)
	}
	return otherwise
}

// Ints returns an attribute, nil if there is none.
func (op *Op) Ints(name string) []int64 {
	if a := op.Attribute(name); a != nil {
		return a.Ints
	}
	return nil
}

// WithOutputs returns the op with another number of results.
func (op *Op) WithOutputs(n int) *Op {
	c := op.copied()
	c.Outputs = n
	return c
}

// WithAttributes returns the op with other values of attributes, or more of them.
func (op *Op) WithAttributes(list ...*onnx.Attribute) *Op {
	c := op.copied()
	c.Attributes = slices.DeleteFunc(slices.Clone(op.Attributes), func(a *onnx.Attribute) bool {
		return slices.ContainsFunc(list, func(b *onnx.Attribute) bool { return b.Name == a.Name })
	})
	c.Attributes = append(c.Attributes, list...)
	slices.SortStableFunc(c.Attributes, func(a, b *onnx.Attribute) int { return strings.Compare(a.Name, b.Name) })
	return c
}

func (op *Op) copied() *Op {
	return Op{Type: op.Type, Domain: op.Domain, overload: op.overload, Attributes: op.Attributes, Bodies: op.Bodies, Outputs: op.Outputs, Legacy: op.Legacy, operator: op.operator}.completed()
}
