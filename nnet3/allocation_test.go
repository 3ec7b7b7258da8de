package nnet3

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// TestFaultsAreFew checks that config lines after the last reported fault cost nothing.
func TestFaultsAreFew(t *testing.T) {
	var text strings.Builder
	text.WriteString("input-node name=input dim=2\n")
	for i := range 4000 {
		fmt.Fprintf(&text, "output-node name=o%d input=o\ndim-range-node name=d%d input-node=input dim=1 dim-offset=0\n", i, i)
	}
	alloctest.Check(t, "many faults", text.Len(), func() {
		if _, err := ParseConfig(strings.NewReader(text.String()), "config", 1); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "and more") {
			t.Errorf("%.300v", err)
		}
	})
}

// TestModelAllocation replaces every number in small models by absurd sizes. The reader knows the
// length of the input or does not.
func TestModelAllocation(t *testing.T) {
	for name, data := range littleModels(t) {
		for i := range len(data) - 5 {
			if data[i] != 4 {
				continue
			}
			for _, n := range []uint32{1 << 20, 1 << 24, 1<<31 - 1} {
				broken := bytes.Clone(data)
				binary.LittleEndian.PutUint32(broken[i+1:], n)
				for _, src := range []io.Reader{bytes.NewReader(broken), io.MultiReader(bytes.NewReader(broken))} {
					alloctest.Check(t, fmt.Sprintf("%s, %d in the place of byte %d", name, n, i+1), len(broken), func() {
						if r, err := kaldiio.NewReader(src, name); err == nil {
							ReadModel(r)
						}
					})
				}
			}
		}
	}
}

// TestLargeModelAllocation reads large models: many components, long vectors in text, long lines,
// names and descriptors.
func TestLargeModelAllocation(t *testing.T) {
	var many strings.Builder
	const n = 20000
	terms := longtest.Of(1, 20)
	fmt.Fprintf(&many, "<Nnet3> \ninput-node name=i dim=1\noutput-node name=o input=i\n\n<NumComponents> %d ", n)
	for i := range n {
		fmt.Fprintf(&many, "<ComponentName> c%d <NoOpComponent> <Dim> 1 <BackpropScale> 1 </NoOpComponent> ", i)
	}
	many.WriteString("</Nnet3> ")
	vector := "<Nnet3> \ninput-node name=i dim=1\noutput-node name=o input=i\n\n<NumComponents> 1 <ComponentName> c <FixedBiasComponent> <Bias> [ " +
		strings.Repeat("1 ", terms<<18) + "] </FixedBiasComponent> </Nnet3> "
	sum := "<Nnet3> \ninput-node name=i dim=1\noutput-node name=o input=Append(i" + strings.Repeat(",i", terms<<18) + ")\n\n<NumComponents> 0 </Nnet3> "
	var nodes strings.Builder
	nodes.WriteString("<Nnet3> \ninput-node name=i dim=1\n")
	for i := range 100000 {
		fmt.Fprintf(&nodes, "dim-range-node name=d%d input-node=i dim=1 dim-offset=0\n", i)
	}
	nodes.WriteString("output-node name=o input=i\n\n<NumComponents> 0 </Nnet3> ")
	for name, text := range map[string]string{"components": many.String(), "vector": vector, "terms": sum, "nodes": nodes.String()} {
		alloctest.Check(t, name, len(text), func() {
			if _, _, err := readModelBytes(name, []byte(text)); err != nil && name != "terms" {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestConfigAllocation checks that the components of a config share the bound on generated numbers.
func TestConfigAllocation(t *testing.T) {
	var text strings.Builder
	text.WriteString("input-node name=i dim=1\noutput-node name=o input=i\n")
	for i := range 100 {
		fmt.Fprintf(&text, "component name=c%d type=AffineComponent input-dim=1024 output-dim=1024\n", i)
	}
	read := func(room int) (err error) {
		alloctest.Check(t, "config", text.Len(), func() {
			err = new(Nnet).readConfig(strings.NewReader(text.String()), "config", 1, room)
		})
		return err
	}
	err := read(1 << 22)
	if !errors.Is(err, component.ErrConfig) || !strings.Contains(err.Error(), "config:6: component c3: 1024×1024 parameters are more than the ") {
		t.Errorf("%.300v", err)
	}
}
