package expr

import (
	"strconv"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// postfix reads what follows an expression: an attribute, a method, an index, or the number of an
// output.
func (p *parser) postfix(x value) value {
	for {
		t := p.peek()
		switch {
		case p.sign("."):
			name := p.take()
			if name.kind != tokenName {
				p.next--
				p.fail("a name is expected after the dot")
			}
			p.at = name.pos
			if p.sign("(") {
				if full, ok := methods[name.text]; ok {
					name.text = full
				}
				x = p.call(name, []value{x})
				continue
			}
			x = p.mark(attribute(name.text, x.tensor(name.text)))
		case p.sign("["):
			indexes := p.indexes()
			p.at = t.pos
			x = p.mark(index(x, indexes))
		// Only if there are several outputs: in an index, x[a::2] goes on like this as well.
		case t.text == "::" && x.kind == kindTensor && x.v.Owner() != nil && len(x.v.Owner().Outputs()) > 1:
			p.next++
			n := p.take()
			k, err := strconv.Atoi(n.text)
			if err != nil || k < 0 || k >= len(x.v.Owner().Outputs()) {
				p.fail("there is no output %s", n)
			}
			x = tensorValue(x.v.Owner().Outputs()[k])
		default:
			return x
		}
	}
}

// methods are the names of functions that are shorter as methods: x[1:3].set(y).
var methods = map[string]string{"set": "set_subtensor", "inc": "inc_subtensor"}

// attribute returns what x.name means.
func attribute(name string, x *fgraph.Variable) value {
	switch name {
	case "T":
		return tensorValue(tensor.Transpose(x))
	case "mT":
		return tensorValue(matrixTranspose(x))
	case "shape":
		return tensorValue(tensor.Shape(x))
	case "ndim":
		return value{kind: kindNumber, num: intNumber(int64(tensor.TypeOf(x).NDim()))}
	case "size":
		return tensorValue(tensor.ReduceOver(array.Prod, tensor.Shape(x)))
	case "dtype":
		return value{kind: kindName, text: tensor.TypeOf(x).DType().String()}
	}
	fail(name, "a tensor has no such attribute; there are T, mT, shape, ndim, size and dtype%s", spell.Hint(name, []string{"shape", "ndim", "size", "dtype"}))
	return value{}
}
