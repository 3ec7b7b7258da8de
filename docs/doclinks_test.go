package docs

import (
	"go/ast"
	"go/build"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// A documented package is what "go doc" knows of one.
type documented struct {
	*doc.Package
	dir string
}

// core are the packages of which go test reads the documentation by default. The flag -long reads all.
var core = []string{"fgraph", "rewrite", "pattern", "optdb", "profile", "tensor"}

// readPackages returns the packages of this module by import path.
func readPackages(t *testing.T) map[string]documented {
	t.Helper()
	list := make(map[string]documented)
	err := filepath.WalkDir("..", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); name == "testdata" || dir != ".." && strings.HasPrefix(name, ".") {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel("..", dir)
		if err != nil {
			return err
		}
		if top, _, _ := strings.Cut(filepath.ToSlash(rel), "/"); rel != "." && !longtest.Enabled() && !slices.Contains(core, top) {
			return filepath.SkipDir
		}
		p, err := build.ImportDir(dir, 0)
		if err != nil {
			return nil // no package for this system
		}
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments)
			if err != nil {
				return err
			}
			files = append(files, f)
		}
		path := module + filepath.ToSlash(rel)
		of, err := doc.NewFromFiles(fset, files, path)
		list[path] = documented{of, dir}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// has reports whether "go doc" shows a name, or a method "Type.Method".
func (p documented) has(recv, name string) bool {
	for _, typ := range p.Types {
		if recv == "" && typ.Name == name {
			return true
		}
		for _, f := range typ.Methods {
			if recv == typ.Name && f.Name == name {
				return true
			}
		}
		for _, f := range typ.Funcs {
			if recv == "" && f.Name == name {
				return true
			}
		}
		if recv == "" && (holds(typ.Consts, name) || holds(typ.Vars, name)) || recv == typ.Name && declares(typ.Decl, name) {
			return true
		}
	}
	for _, f := range p.Funcs {
		if recv == "" && f.Name == name {
			return true
		}
	}
	return recv == "" && (holds(p.Consts, name) || holds(p.Vars, name))
}

func holds(values []*doc.Value, name string) bool {
	for _, v := range values {
		for _, n := range v.Names {
			if n == name {
				return true
			}
		}
	}
	return false
}

// declares reports whether a type has a field or a method of an interface.
func declares(decl *ast.GenDecl, name string) (found bool) {
	ast.Inspect(decl, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			for _, id := range f.Names {
				found = found || id.Name == name
			}
		}
		return true
	})
	return found
}

// comments calls f for the documentation of the package and of all that it exports.
func (p documented) comments(f func(of, text string)) {
	values := func(list []*doc.Value) {
		for _, v := range list {
			f(strings.Join(v.Names, ", "), v.Doc)
		}
	}
	funcs := func(list []*doc.Func) {
		for _, fn := range list {
			f(strings.TrimPrefix(fn.Recv+"."+fn.Name, "."), fn.Doc)
		}
	}
	f("package", p.Doc)
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs)
	for _, typ := range p.Types {
		f(typ.Name, typ.Doc)
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
		funcs(typ.Methods)
	}
}

// intended matches what is written like a link to something exported.
var intended = regexp.MustCompile(`\[\*?(?:[a-z][\w/.-]*\.)?[A-Z][a-z]\w*(?:\.[A-Z]\w*)?\]`)

// TestDocLinks: what documentation links to is what "go doc" shows.
func TestDocLinks(t *testing.T) {
	packages := readPackages(t)
	links := 0
	for path, p := range packages {
		parse := p.Parser()
		p.comments(func(of, text string) {
			for _, block := range parse.Parse(text).Content {
				walkText(block, func(x comment.Text) {
					switch x := x.(type) {
					case comment.Plain:
						for _, m := range intended.FindAllString(string(x), -1) {
							t.Errorf("%s, %s: %s leads nowhere", path, of, m)
						}
					case *comment.DocLink:
						links++
						in := p
						if x.ImportPath != "" {
							other, ours := packages[x.ImportPath]
							if !ours {
								return // the standard library, or another module
							}
							in = other
						}
						if x.Name != "" && !in.has(x.Recv, x.Name) {
							t.Errorf("%s, %s: [%s.%s.%s] leads nowhere", path, of, x.ImportPath, x.Recv, x.Name)
						}
					}
				})
			}
		})
	}
	if links < 300 {
		t.Errorf("only %d links", links)
	}
	// What all kinds of databases can do is shown with each of them.
	for _, kind := range []string{"SequenceDB", "EquilibriumDB", "TopoDB", "GroupDB", "DB"} {
		for _, method := range []string{"Add", "Build", "Check", "Entries", "Has", "Name", "Names", "Outline", "Remove", "Replace", "SetDriver"} {
			if !packages[module+"optdb"].has(kind, method) {
				t.Errorf("go doc ./optdb %s does not show %s", kind, method)
			}
		}
	}
}

// walkText calls f for the text of a block, and of what is in it.
func walkText(block comment.Block, f func(comment.Text)) {
	each := func(list []comment.Text) {
		for _, x := range list {
			f(x)
		}
	}
	switch b := block.(type) {
	case *comment.Paragraph:
		each(b.Text)
	case *comment.Heading:
		each(b.Text)
	case *comment.List:
		for _, item := range b.Items {
			for _, inner := range item.Content {
				walkText(inner, f)
			}
		}
	}
}
