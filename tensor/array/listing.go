package array

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Listing returns a program as text that [ParseProgram] reads: the types of the inputs, then every
// further value with the numbers of its arguments, and the outputs.
//
//	float64 float32; cast{float64} 1; constant float64 [] 2.0; mul 3 0; add 4 2; return 5
func (p *Program) Listing() string {
	lines := make([]string, 1, len(p.types)+2)
	var inputs []string
	for _, t := range p.types[:p.inputs] {
		inputs = append(inputs, t.String())
	}
	lines[0] = strings.Join(inputs, " ")
	for v := range p.Values() {
		if v.Constant != nil {
			lines = append(lines, "constant "+v.Type.String()+" "+v.Constant.Encode())
			continue
		}
		line := v.Op.String()
		if v.Op == Cast {
			line += "{" + v.Type.String() + "}"
		}
		for _, a := range v.Args {
			line += " " + strconv.Itoa(int(a))
		}
		lines = append(lines, line)
	}
	last := "return"
	for _, o := range p.outs {
		last += " " + strconv.Itoa(int(o))
	}
	return strings.Join(append(lines, last), "; ")
}

// A Value is one that a program computes: a constant of one element, or the result of an operation on values.
type Value struct {
	Type     DType
	Constant *Array // otherwise nil
	Op       Opcode
	Args     []int32 // the numbers of the values
}

// Values returns the values of the program behind its inputs, in their order. Those of the inputs have the first numbers.
func (p *Program) Values() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		consts, code := p.consts, p.code
		for n := p.inputs; n < len(p.types); n++ {
			v := Value{Type: p.types[n]}
			if len(consts) > 0 && int(consts[0].value) == n {
				v.Constant, consts = consts[0].data, consts[1:]
			} else {
				v.Op, v.Args, code = code[0].op, code[0].args[:code[0].numArgs], code[1:]
			}
			if !yield(v) {
				return
			}
		}
	}
}

// Results returns the numbers of the values that the program returns.
func (p *Program) Results() []int32 { return slices.Clone(p.outs) }

// ParseProgram reads a program as Listing prints it, and ends it.
func ParseProgram(text string) (*Program, error) {
	lines := strings.Split(text, ";")
	var inputs []DType
	for _, name := range strings.Fields(lines[0]) {
		d, ok := ParseDType(name)
		if !ok {
			return nil, fmt.Errorf("array: program: there is no element type %.100q", name)
		}
		inputs = append(inputs, d)
	}
	p := NewProgram(inputs...)
	for i, line := range lines[1:] {
		name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if last := name == "return"; last != (i == len(lines)-2) {
			return nil, fmt.Errorf("array: program: \"return\" ends it")
		} else if last {
			return p.parseReturn(args)
		}
		if err := p.parseValue(name, args); err != nil {
			return nil, fmt.Errorf("array: program: value %d: %w", len(p.types), err)
		}
	}
	return nil, fmt.Errorf("array: program: \"return\" is missing")
}

// parseValue reads a constant or an operation, and appends it.
func (p *Program) parseValue(name, text string) error {
	if name == "constant" {
		typ, data, _ := strings.Cut(text, " ")
		d, ok := ParseDType(typ)
		if !ok {
			return fmt.Errorf("there is no element type %.100q", typ)
		}
		a, err := Decode(d, data)
		if err == nil && (a.Len() != 1 || a.IsCSR()) {
			err = fmt.Errorf("a constant of shape %v", a.Shape())
		}
		if err == nil {
			p.Constant(a)
		}
		return err
	}
	args, err := p.parseArgs(text)
	if err != nil {
		return err
	}
	n := len(p.types)
	if to, ok := strings.CutPrefix(name, "cast{"); ok {
		d, ok := ParseDType(strings.TrimSuffix(to, "}"))
		if !ok || len(args) != 1 || d == p.types[args[0]] {
			return fmt.Errorf("%.100s of %v", name, args)
		}
		p.Cast(d, args[0])
		return nil
	}
	op, ok := ParseOpcode(name)
	if !ok || op == Cast {
		return fmt.Errorf("there is no operation %.100q", name)
	}
	if count := op.NumArgs(); len(args) == 0 || count >= 0 && len(args) != count || count < 0 && len(args) != 2 {
		return fmt.Errorf("%s of %d arguments", name, len(args))
	}
	types := make([]DType, len(args))
	for i, a := range args {
		types[i] = p.types[a]
	}
	if _, _, ok := op.Types(types...); !ok {
		return fmt.Errorf("%s of %v", name, types)
	}
	// Append converts arguments where their types differ. A listing has conversions as values of their own, and
	// here they would shift the numbers of all that follow.
	p.Append(op, args...)
	if len(p.types) != n+1 {
		return fmt.Errorf("%s of %v needs conversions", name, types)
	}
	return nil
}

func (p *Program) parseReturn(text string) (*Program, error) {
	values, err := p.parseArgs(text)
	if err != nil {
		return nil, fmt.Errorf("array: program: return: %w", err)
	}
	n := len(p.types)
	// Return adds a copy for such an output, which Listing would have written.
	if p.Return(values...); len(p.types) != n {
		return nil, fmt.Errorf("array: program: an output is not the result of an operation, or is listed twice")
	}
	return p, nil
}

// parseArgs reads numbers of values that there are.
func (p *Program) parseArgs(text string) ([]int, error) {
	var args []int
	for _, f := range strings.Fields(text) {
		v, err := strconv.ParseUint(f, 10, 31)
		if err != nil || int(v) >= len(p.types) {
			return nil, fmt.Errorf("there is no value %.100q", f)
		}
		args = append(args, int(v))
	}
	return args, nil
}
