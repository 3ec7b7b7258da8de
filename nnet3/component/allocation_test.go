package component

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// absurd holds sizes that no component has.
var absurd = []int32{1 << 20, maxDim, maxDim + 1, 1<<31 - 1}

// TestReadAllocation replaces each number in the binary form of every type with absurd sizes, and
// checks that reading allocates no more than the bound.
func TestReadAllocation(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		var buf bytes.Buffer
		w := kaldiio.NewWriter(&buf, true)
		w.Header()
		if err := Write(k.c, w); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		data := buf.Bytes()
		for i := range len(data) - 5 {
			if data[i] != 4 {
				continue
			}
			for _, n := range absurd[:longtest.Of(1, len(absurd))] {
				broken := bytes.Clone(data)
				binary.LittleEndian.PutUint32(broken[i+1:], uint32(n))
				used := alloctest.Bytes(func() { readBytes(k.name, broken) })
				if used > alloctest.Bound(len(broken)) {
					t.Errorf("%d in the place of byte %d: %d bytes were allocated for %d", n, i+1, used, len(broken))
				}
			}
		}
	})
}

func readBytes(typ string, data []byte) error {
	r, err := kaldiio.NewReader(bytes.NewReader(data), "test")
	if err != nil {
		return err
	}
	if err := r.Expect("<" + typ + ">"); err != nil {
		return err
	}
	c, _ := kaldi.New(typ)
	return kaldi.Read(c, r)
}

// TestClaims checks that components that need much more memory than their form share one limit.
func TestClaims(t *testing.T) {
	const one = "<BatchNormComponent> <Dim> 2000000 <BlockDim> 1 <Epsilon> 0.001 <TargetRms> 1 <TestMode> T <Count> 1 <StatsMean> [ 0 ] <StatsVar> [ 1 ] </BatchNormComponent> "
	r, err := kaldiio.NewReader(strings.NewReader(strings.Repeat(one, 10)), "test")
	if err != nil {
		t.Fatal(err)
	}
	used := alloctest.Bytes(func() {
		for i := range 10 {
			if err = r.Expect("<BatchNormComponent>"); err == nil {
				err = kaldi.Read(new(batchNorm), r)
			}
			if err != nil {
				if i == 0 {
					t.Error(err)
				}
				return
			}
		}
	})
	if !errors.Is(err, kaldiio.ErrCorrupt) || !strings.Contains(err.Error(), "bytes of memory") {
		t.Errorf("no complaint, but %v", err)
	}
	if used > alloctest.Bound(0) {
		t.Errorf("%d bytes were allocated", used)
	}
}

var number = regexp.MustCompile(`=-?[0-9]+`)

// TestInitAllocation replaces one number, or all, in the configuration lines of every type with
// absurd ones, and checks that Init with room for 2²² numbers allocates no more than the bound.
func TestInitAllocation(t *testing.T) {
	for _, typ := range kaldi.Types() {
		for _, config := range testConfigs[typ] {
			places := number.FindAllStringIndex(config, -1)
			for _, n := range absurd {
				lines := []string{number.ReplaceAllString(config, fmt.Sprint("=", n))}
				for _, p := range places {
					lines = append(lines, config[:p[0]+1]+fmt.Sprint(n)+config[p[1]:])
				}
				for i, text := range lines {
					if i%longtest.Of(3, 1) != 0 {
						continue
					}
					line, err := ParseConfigLine("component type=" + typ + " " + text)
					if err != nil {
						t.Fatal(err)
					}
					line.MaxNumbers = 1 << 22
					c, _ := kaldi.New(typ)
					used := alloctest.Bytes(func() { err = Init(c, line) })
					if used > alloctest.Bound(len(text)) || line.Numbers() > line.MaxNumbers {
						t.Errorf("%s %s: %d bytes were allocated, %d numbers claimed (%v)", typ, text, used, line.Numbers(), err)
					}
				}
			}
		}
	}
}
