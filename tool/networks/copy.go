package networks

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks/internal/display"
)

func (o *Options) copyVerb() tool.Verb {
	return tool.Verb{
		Name:     "copy",
		Before:   "version",
		Args:     "IN OUT",
		Synopsis: "convert a model or a table of matrices or vectors between text and binary",
		Detail: `
IN is a Kaldi nnet3 model (raw or .mdl, binary or text), "-" standard input, and OUT is a file or "-"; or IN is an rspecifier of
matrices, such as scp:feats.scp, and OUT a wspecifier, such as ark,t:-. With --vectors IN is one of vectors, such as i-vectors. A .mdl
stays a .mdl, unless --raw extracts its network. Matrices and vectors are written in single precision.`,
		Examples: `
$0 copy --binary=false final.mdl final.txt
$0 copy scp:feats.scp ark,t:-
$0 copy --vectors ark:ivectors.ark ark,scp:iv.ark,iv.scp`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			f := &copyFlags{options: o}
			fs.BoolVar(&f.binary, "binary", true, "Write a model in binary; for a table the wspecifier decides (ark,t:)")
			fs.BoolVar(&f.raw, "raw", false, "Write only the network of a .mdl")
			fs.BoolVar(&f.vectors, "vectors", false, "The table holds vectors, such as i-vectors")
			fs.BoolVar(&f.compress, "compress", false, "Write matrices in compressed form")
			fs.IntVar(&f.method, "compression-method", int(kaldiio.CompressAuto), "Kaldi's number of the compression method, 1 to 7")
			fs.BoolVar(&f.pipes, "allow-pipes", false, "Run commands in place of file names, such as \"gunzip -c feats.gz |\", in scripts too")
			return tool.Taking(2, 2, "IN OUT", func(ctx context.Context, c *tool.Console, args []string) error {
				return pipesHint(f.copy(ctx, c, args[0], args[1]))
			})
		},
	}
}

// copyFlags are the flags of the verb copy.
type copyFlags struct {
	options                               *Options
	binary, raw, vectors, compress, pipes bool
	method                                int
}

func (f *copyFlags) copy(ctx context.Context, c *tool.Console, in, out string) error {
	if in == "" || out == "" {
		return tool.Usagef("the name of a file is empty; \"-\" is standard input or output")
	}
	o := opener(ctx, c, f.pipes)
	if _, err := kaldiio.ParseRspecifier(in); err != nil {
		if _, outErr := kaldiio.ParseWspecifier(out); outErr == nil {
			return tool.Usagef("%s is a wspecifier, but %s is not an rspecifier: %w", out, in, err)
		}
		return f.copyModel(c, o, in, out)
	}
	if err := f.checkTable(c); err != nil {
		return err
	}
	if err := keepInput(out, in); err != nil {
		return err
	}
	switch {
	case f.vectors:
		return copyTable(c, o, in, out, kaldiio.VectorHolder(), (*kaldiio.Writer).Vector)
	case f.compress:
		return copyTable(c, o, in, out, matricesOnly(), func(w *kaldiio.Writer, m kaldiio.Matrix) {
			w.CompressedMatrix(m, kaldiio.CompressionMethod(f.method))
		})
	}
	return copyTable(c, o, in, out, matricesOnly(), (*kaldiio.Writer).Matrix)
}

// matricesOnly is the holder of matrices, whose error for a vector names --vectors. Vectors in text
// can be read as matrices of one row.
func matricesOnly() kaldiio.Holder[kaldiio.Matrix] {
	h := kaldiio.MatrixHolder()
	h.Read = func(r *kaldiio.Reader) (kaldiio.Matrix, error) {
		vector := r.PeekIs("FV") || r.PeekIs("DV")
		m, err := r.Matrix()
		if err != nil && vector {
			err = fmt.Errorf("%w; --vectors copies vectors", err)
		}
		return m, err
	}
	return h
}

// checkTable returns an error for flags that have no meaning for a table.
func (f *copyFlags) checkTable(c *tool.Console) error {
	return cmp.Or(
		c.InVain("for a table: ark,t: as OUT writes text", "binary", "raw"),
		c.InVainIf(f.vectors, "for vectors, which Kaldi does not compress", "compress", "compression-method"),
		c.InVainIf(!f.compress, "without --compress", "compression-method"),
	)
}

// copyModel copies a model.
func (f *copyFlags) copyModel(c *tool.Console, o *kaldiio.Opener, in, out string) error {
	if err := c.InVain("for a model", "vectors", "compress", "compression-method"); err != nil {
		return err
	}
	if tool.SameFile(in, out) {
		return tool.Usagef("%s is an input and would be overwritten", in)
	}
	am, err := f.options.model(c, o, in, nil)
	if err != nil {
		return err
	}
	if f.raw {
		am = &nnet3.AmNnetSimple{Nnet: am.Nnet, Raw: true}
	}
	return specifierUsage(o.WriteOutput(out, func(to io.Writer) error {
		w := kaldiio.NewWriter(to, f.binary)
		w.Header()
		if err := am.Write(w); err != nil {
			return err
		}
		return w.Flush()
	}))
}

// copyTable copies a table. It reports the objects of a script that it can't read,
// and copies the others.
func copyTable[T any](c *tool.Console, o *kaldiio.Opener, in, out string, holder kaldiio.Holder[T], write func(*kaldiio.Writer, T)) error {
	r, err := kaldiio.NewTableReader(o, in, holder)
	if err != nil {
		return specifierUsage(err)
	}
	w, err := kaldiio.NewTableWriter(o, out, write)
	if err != nil {
		r.Close()
		return specifierUsage(err)
	}
	failed := 0
	// An object that can't be read is reported, and copying continues with the next line of a
	// script, or with the next object of an archive that can be recognized.
	for err == nil {
		if !r.Next() {
			var more bool
			if more, err = r.Skip(); err == nil {
				break
			}
			if more {
				c.Say("%v", pipesHint(err))
				failed++
				err = nil
			}
			continue
		}
		err = w.Write(r.Key(), r.Value())
	}
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if closeErr := r.Close(); err == nil {
		err = closeErr
	}
	copied, lost := w.Count()
	text := fmt.Sprintf("%s objects copied", display.Thousands(copied))
	if lost > 0 {
		text += fmt.Sprintf(", %s could not be written", display.Thousands(lost))
	}
	if failed > 0 {
		text += fmt.Sprintf(", %s could not be read", display.Thousands(failed))
	}
	c.Say("%s", text)
	if err == nil && failed > 0 {
		return tool.ErrSilent
	}
	return err
}
