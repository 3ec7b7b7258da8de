package lower

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// opText returns an op as text. Without tables, the text does not say how components were derived,
// nor which indexes they look up.
func opText(op fgraph.Op, tables *fileDialect) (string, error) {
	switch op := op.(type) {
	case Fill:
		return fmt.Sprintf("Fill{%dx%d, %s}", op.Rows, op.Cols, floatText(op.Value)), nil
	case Block:
		return op.String(), nil
	case *RowRanges:
		b := fmt.Appendf(nil, "RowRanges{%d", op.Cols)
		if len(op.Ranges) > 0 {
			b = append(b, "; "...)
		}
		b = index.AppendRuns(b, 2, len(op.Ranges), func(i, j int) int32 { return op.Ranges[i][j] })
		return string(b) + "}", tables.claim(len(op.Ranges))
	case *Assemble:
		return assembleText(op, tables)
	case Propagate:
		return runText("Propagate", op.Component, op.Precomputed, false, tables, op.instance, op.flags())
	case Backprop:
		return runText("Backprop", op.Component, op.Precomputed, true, tables, op.Instance, op.flags())
	}
	return "", fmt.Errorf("%w: the op %v has no text", errText, op)
}

// flags returns the flags that the text of the op names if they hold.
func (o *Propagate) flags() []namedFlag {
	return []namedFlag{{"stats", &o.StoreStats}, {"memo", &o.UsesMemo}, {"accumulate", &o.Accumulate}, {"inplace", &o.InPlace}}
}

func (o *Backprop) flags() []namedFlag {
	return []namedFlag{{"x", &o.hasX}, {"y", &o.HasY}, {"dx", &o.HasDX}, {"memo", &o.UsesMemo}, {"state", &o.HasState},
		{"update", &o.ModelUpdate}, {"accumulate", &o.Accumulate}, {"inplace", &o.InPlace}}
}

// runText returns the text of an op that runs a component.
func runText(name string, c Component, pre *computation.PrecomputedIndexesInfo, backward bool, tables *fileDialect, instance int32, flags []namedFlag) (string, error) {
	text, err := tables.componentText(c)
	if err != nil {
		return "", err
	}
	words := []string{text}
	if pre != nil {
		n, err := tables.indexesNumber(c, pre, backward)
		if err != nil {
			return "", err
		}
		words = append(words, "indexes"+n)
	}
	for _, f := range flags {
		if *f.flag {
			words = append(words, f.name)
		}
	}
	if instance != 0 {
		words = append(words, "instance="+strconv.Itoa(int(instance)))
	}
	return name + "{" + strings.Join(words, ", ") + "}", nil
}

// assembleText returns an Assemble by the name of its special case, with its terms: which input,
// which part of it, where to (unless to the beginning), the scale (unless 1), and the command that
// the term comes from.
func assembleText(o *Assemble, tables *fileDialect) (string, error) {
	b := fmt.Appendf(nil, "%s{%dx%d", o.kind(), o.Rows, o.Cols)
	for i := range o.Terms {
		t := &o.Terms[i]
		b = append(b, "; "...)
		b = strconv.AppendInt(b, int64(t.Input), 10)
		if t.Contiguous() {
			b = fmt.Appendf(b, "[%d:%d,", t.SrcRow, t.SrcRow+t.NumRows)
		} else {
			if err := tables.claim(len(t.Rows)); err != nil {
				return "", err
			}
			b = append(b, "[{"...)
			b = index.AppendRuns(b, 2, len(t.Rows), func(i, j int) int32 { return [2]int32{t.Rows[i].Dst, t.Rows[i].Src}[j] })
			b = append(b, "},"...)
		}
		b = fmt.Appendf(b, "%d:%d]", t.SrcCol, t.SrcCol+t.NumCols)
		row := t.DstRow
		if !t.Contiguous() {
			row = 0
		}
		if row != 0 || t.DstCol != 0 {
			b = fmt.Appendf(b, ">%d,%d", row, t.DstCol)
		}
		if t.Scale != 1 {
			b = append(b, '*')
			b = append(b, floatText(t.Scale)...)
		}
		if t.At != 0 {
			b = append(b, '@')
			b = strconv.AppendInt(b, int64(t.At), 10)
		}
	}
	return string(append(b, '}')), nil
}

func floatText(x float32) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }

// token returns a name as it is or, if it holds anything that has a meaning elsewhere, in quotes.
func token(name string) string {
	plain := name != "" && utf8.ValidString(name)
	for _, r := range name {
		plain = plain && unicode.IsPrint(r) && !strings.ContainsRune(" \",;:#@=*><\\{}[]()", r)
	}
	if plain {
		return name
	}
	quoted := strconv.QuoteToASCII(name)
	for _, c := range " =[](){}" {
		quoted = strings.ReplaceAll(quoted, string(c), fmt.Sprintf(`\x%02x`, c))
	}
	return quoted
}

// parseToken reads a name that token wrote.
func parseToken(text string) (string, error) {
	if !strings.HasPrefix(text, `"`) {
		if text == "" {
			return "", fmt.Errorf("%w: a name is missing", errText)
		}
		return text, nil
	}
	name, err := strconv.Unquote(text)
	if err != nil {
		return "", fmt.Errorf("%w: malformed name %s", errText, fileio.Excerpt(text, 0))
	}
	return name, nil
}
