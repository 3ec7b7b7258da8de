package nnet3

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/internal/descriptor"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// A Loader reads networks.
type Loader struct {
	// Types are the component types that a network may have. nil means those of package component.
	Types *component.Registry
	// Each, if it is not nil, is called with each component before the next one is read. Memory that
	// it returns is used for that.
	Each func(component.Component) []float32
}

// types returns the registry.
func (l Loader) types() *component.Registry { return cmp.Or(l.Types, component.Kaldi()) }

// ReadNnet is [Loader.ReadNnet] for the types of package component.
func ReadNnet(r *kaldiio.Reader) (*Nnet, error) { return Loader{}.ReadNnet(r) }

// ReadNnet reads a raw network. It skips a transition model before it, as in a .mdl file. If the
// network needs component types that the registry does not have, an error that wraps ErrUnsupported
// lists them.
func (l Loader) ReadNnet(r *kaldiio.Reader) (*Nnet, error) {
	r.Limit(maxModel)
	if r.PeekIs("<TransitionModel>") {
		if _, err := readTransitionModel(r); err != nil {
			return nil, err
		}
	}
	if err := expectNnet(r); err != nil {
		return nil, err
	}
	nn := &Nnet{types: l.types()}
	c := &configReader{nn: nn, terms: descriptor.MaxSize}
	if err := c.readLines(r); err != nil {
		return nil, err
	}
	unknown, err := nn.readComponents(r, l.Each)
	if err != nil {
		return nil, err
	}
	if len(unknown.types) > 0 {
		return nil, fmt.Errorf("%s: %w", r.Name(), c.unsupported(unknown))
	}
	if err := c.build(); err != nil {
		return nil, err
	}
	if err := nn.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Name(), err)
	}
	return nn, nil
}

// expectNnet reads the opening token, or says what else the file is.
func expectNnet(r *kaldiio.Reader) error {
	for _, other := range [...]struct{ token, what string }{
		{"<DIMENSION>", "this is a model of Gaussian mixtures"},
		{"<DiagGMM>", "this is a model of Gaussian mixtures"},
		{"<Nnet>", "this is a network of nnet1 or nnet2"},
		{"<Nnet3Eg>", "these are training examples"},
		{"<Nnet3ChainEg>", "these are training examples"},
		{"<NnetComputation>", "this is a compiled computation"},
	} {
		if r.PeekIs(other.token) {
			return r.Errorf("expected <Nnet3>, got %s: %s", other.token, other.what)
		}
	}
	return r.Expect("<Nnet3>")
}

// readLines reads the config lines of a model, up to the empty line after them.
func (c *configReader) readLines(r *kaldiio.Reader) error {
	rest, err := r.Line()
	if err != nil {
		return err
	}
	if strings.TrimSpace(rest) != "" {
		return r.Errorf("expected a new line after <Nnet3>, got %.40q", rest)
	}
	for n := 1; ; n++ {
		text, err := r.Line()
		if err != nil {
			return err
		}
		if strings.TrimSpace(text) == "" {
			return nil
		}
		c.addLine(text, r.Name()+" (lines of the network)", n)
		if l := len(c.lines); l > 0 && c.lines[l-1].First == "component" {
			return r.Errorf("a model holds no component lines: %.60q", text)
		}
	}
}

// unknownComponents are the components of unknown types.
type unknownComponents struct {
	types []string
	names map[string][]string // by type
}

// readComponents reads the components. It leaves out those of unknown types and returns them.
func (nn *Nnet) readComponents(r *kaldiio.Reader, each func(component.Component) []float32) (unknown unknownComponents, err error) {
	if err := r.Expect("<NumComponents>"); err != nil {
		return unknown, err
	}
	n, err := r.Int()
	if err != nil {
		return unknown, err
	}
	if n < 0 {
		return unknown, r.Errorf("the number of components is %d", n)
	}
	seen := make(map[string]bool)
	unknown.names = make(map[string][]string)
	for range n {
		name, err := readComponentName(r)
		if err != nil {
			return unknown, err
		}
		if seen[name] {
			return unknown, r.Errorf("there are two components called %s", name)
		}
		seen[name] = true
		typ, err := nn.readComponent(r, name)
		if err != nil {
			return unknown, fmt.Errorf("component %s: %w", name, err)
		}
		if typ != "" {
			if unknown.names[typ] == nil {
				unknown.types = append(unknown.types, typ)
			}
			unknown.names[typ] = append(unknown.names[typ], name)
		} else if each != nil {
			r.Spare(each(nn.Components[len(nn.Components)-1]))
		}
	}
	return unknown, r.Expect("</Nnet3>")
}

func readComponentName(r *kaldiio.Reader) (string, error) {
	if err := r.Expect("<ComponentName>"); err != nil {
		return "", err
	}
	name, err := r.Token()
	if err == nil && !validName(name) {
		return "", r.Errorf("%.40q can't be the name of a component", name)
	}
	return name, err
}

// readComponent reads a component. It skips one of an unknown type and returns the type.
func (nn *Nnet) readComponent(r *kaldiio.Reader, name string) (unknown string, err error) {
	t, err := r.Token()
	if err != nil {
		return "", err
	}
	if len(t) < 3 || t[0] != '<' || t[1] == '/' || t[len(t)-1] != '>' {
		return "", r.Errorf("expected the token of a component, such as <AffineComponent>, got %.40q", t)
	}
	typ := t[1 : len(t)-1]
	comp, ok := nn.types.New(typ)
	if !ok {
		return typ, r.SkipPast("</" + typ + ">")
	}
	if err := nn.types.Read(comp, r); err != nil {
		return "", err
	}
	nn.Components = append(nn.Components, comp)
	nn.ComponentNames = append(nn.ComponentNames, name)
	return "", nil
}

// unsupported returns the error for unknown types of components and other faults of the lines.
func (c *configReader) unsupported(unknown unknownComponents) error {
	// Component-nodes of unknown components would repeat the fault: check just their inputs.
	c.dropReplaced()
	c.declare()
	if c.errs == nil {
		for i := range c.lines {
			if l := &c.lines[i]; l.First == "component-node" {
				c.descriptor(l, c.starts[i])
				continue
			}
			c.define(i)
		}
	}
	var all faults
	for _, typ := range unknown.types {
		names := unknown.names[typ]
		list := strings.Join(names[:min(3, len(names))], ", ")
		if more := len(names) - 3; more > 0 {
			list += fmt.Sprintf(" and %d more", more)
		}
		all.errs = append(all.errs, fmt.Errorf("component %s: %w", list, c.unknownType(typ)))
	}
	all.errs = append(all.errs, c.errs...)
	return all.err()
}

// Write writes the network as Kaldi does. Config lines are text even in binary.
func (nn *Nnet) Write(w *kaldiio.Writer) error {
	w.Raw("<Nnet3> \n")
	for i := range nn.Nodes {
		if line := nn.ConfigLine(i); line != "" {
			w.Raw(line)
			w.Raw("\n")
		}
	}
	w.Raw("\n")
	w.Token("<NumComponents>")
	w.Int(len(nn.Components))
	w.Newline()
	for i, c := range nn.Components {
		w.Token("<ComponentName>")
		w.Token(nn.ComponentNames[i])
		if err := component.Write(c, w); err != nil {
			return fmt.Errorf("component %s: %w", nn.ComponentNames[i], err)
		}
		w.Newline()
	}
	w.Token("</Nnet3>")
	return w.Err()
}

// ConfigLine returns the config line of a node, or "" for the hidden input of a component-node.
func (nn *Nnet) ConfigLine(node int) string {
	n := &nn.Nodes[node]
	switch n.Kind {
	case InputNode:
		return fmt.Sprintf("input-node name=%s dim=%d", n.Name, n.Dim)
	case ComponentNode:
		return fmt.Sprintf("component-node name=%s component=%s input=%s", n.Name, nn.ComponentNames[n.Component], nn.format(node-1))
	case DimRangeNode:
		return fmt.Sprintf("dim-range-node name=%s input-node=%s dim-offset=%d dim=%d", n.Name, nn.Nodes[n.Input].Name, n.DimOffset, n.Dim)
	}
	if nn.IsComponentInputNode(node) {
		return ""
	}
	objective := "linear"
	if n.quadratic {
		objective = "quadratic"
	}
	return fmt.Sprintf("output-node name=%s input=%s objective=%s", n.Name, nn.format(node), objective)
}

// format prints the descriptor of a node.
func (nn *Nnet) format(node int) string { return nn.Nodes[node].Descriptor.Format(nn.NodeName) }
