package docs

import (
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/internal/proctest"
)

var update = flag.Bool("update", false, "write the listings of the pages, and api.txt, anew")

// A listing is the body of an example with what it prints, or a declaration as it is: of a
// function, or of a type with its methods.
type listing struct {
	code, output string
	file         string
	imports      []string // of this module, without the name of the module
}

// readListings returns the declarations of the tutorial's code by name.
func readListings(t *testing.T) map[string]listing {
	t.Helper()
	files, err := filepath.Glob("examples/tutorial/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	listings := make(map[string]listing)
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		text := func(from, to token.Pos) string {
			return string(source[fset.Position(from).Offset:fset.Position(to).Offset])
		}
		whole := func(d ast.Decl, doc *ast.CommentGroup) string {
			if doc != nil {
				return text(doc.Pos(), d.End()) + "\n"
			}
			return text(d.Pos(), d.End()) + "\n"
		}
		add := func(name, code, output string, d ast.Decl) {
			l := listings[name]
			l.code, l.output, l.file = l.code+code, l.output+output, path
			l.imports = append(l.imports, importsOf(file, d)...)
			slices.Sort(l.imports)
			l.imports = slices.Compact(l.imports)
			listings[name] = l
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				if s, ok := d.Specs[0].(*ast.TypeSpec); ok {
					add(s.Name.Name, whole(d, d.Doc), "", d)
				}
			case *ast.FuncDecl:
				switch {
				case d.Recv != nil: // of a type that is declared before
					of := d.Recv.List[0].Type
					if p, ok := of.(*ast.StarExpr); ok {
						of = p.X
					}
					add(of.(*ast.Ident).Name, "\n"+whole(d, d.Doc), "", d)
				case strings.HasPrefix(d.Name.Name, "Example"):
					body, output, ok := strings.Cut(text(d.Body.Lbrace+2, d.Body.Rbrace), "\t// Output:\n")
					if !ok || output == "" {
						t.Errorf("%s prints nothing", d.Name.Name)
					}
					add(d.Name.Name, unindent(body, "\t"), unindent(output, "\t// "), d)
				default:
					add(d.Name.Name, whole(d, d.Doc), "", d)
				}
			}
		}
	}
	return listings
}

// importsOf returns the packages of this module that a declaration uses.
func importsOf(file *ast.File, d ast.Decl) []string {
	paths := make(map[string]string) // by name
	for _, s := range file.Imports {
		path := strings.Trim(s.Path.Value, `"`)
		if own, ok := strings.CutPrefix(path, module); ok {
			paths[own[strings.LastIndexByte(own, '/')+1:]] = own
		}
	}
	var list []string
	ast.Inspect(d, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && paths[x.Name] != "" && !slices.Contains(list, paths[x.Name]) {
				list = append(list, paths[x.Name])
			}
		}
		return true
	})
	return list
}

// note returns the line above a listing in a page: what it imports, and where it is whole.
func (l listing) note(t *testing.T, page string) string {
	file, err := filepath.Rel(filepath.Join(root(t), "docs", filepath.Dir(page)), filepath.Join(root(t), "docs", l.file))
	if err != nil {
		t.Fatal(err)
	}
	whole := "[" + filepath.Base(file) + "](" + filepath.ToSlash(file) + ")"
	if len(l.imports) == 0 {
		return "In " + whole + ".\n\n"
	}
	return "In " + whole + "; imports of `" + strings.TrimSuffix(module, "/") + "`: `" + strings.Join(l.imports, "`, `") + "`.\n\n"
}

// named finds the named listings of a page, each with the line above.
var named = regexp.MustCompile("(?m)(?:^In \\[\\w+\\.go\\].*[.:]\n\n)?^<!-- (\\w+) -->\n```go\n")

// TestListingImports: above each listing are its imports, and a link to the file that has it whole. "go
// test ./docs -run ListingImports -update" writes these lines anew.
func TestListingImports(t *testing.T) {
	listings := readListings(t)
	for _, page := range listingPages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		want := named.ReplaceAllStringFunc(string(text), func(s string) string {
			name := named.FindStringSubmatch(s)[1]
			want := listings[name].note(t, page) + "<!-- " + name + " -->\n```go\n"
			if s != want && !*update {
				t.Errorf("%s: above %s is\n%s\nand not\n%s", page, name, s, want)
			}
			return want
		})
		if *update {
			if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// unindent takes a prefix from every line.
func unindent(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(line, strings.TrimRight(prefix, " "))
		b.WriteString(strings.TrimPrefix(line, prefix[len(strings.TrimRight(prefix, " ")):]))
	}
	return b.String()
}

// root returns the folder of the project.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// measured matches times, which differ from run to run, with the spaces that put them in columns.
var measured = regexp.MustCompile(` *[0-9.]+ (µs|ms|s)\b`)

var heredoc = regexp.MustCompile(`^\$ cat >(\S+) <<END\n`)

// blocks finds the blocks of code of a page, and the names that precede them.
var blocks = regexp.MustCompile("(?s)(?:<!-- (\\w+) -->\n)?```(\\w*)\n(.*?)```\n")

// listingPages are the pages whose listings are held to what runs.
var listingPages = []string{"../README.md", "quickstart.md", "tutorial.md", "architecture.md", "onnx.md", "inference.md", "examples/relalg/README.md"}

// TestListings holds the pages against their code: every named listing in Go is a function of
// examples/tutorial, which is tested there, every text after it is what that prints, and every
// command prints what follows it. "go test ./docs -run Listings -long -update" writes all of that
// anew.
func TestListings(t *testing.T) {
	longtest.Only(t)
	proctest.NeedsPrograms(t)
	listings, shown := readListings(t), map[string]bool{}
	program := t.TempDir()
	for _, dir := range []string{"../cmd/nnopt", "examples/relalg"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
		build.Dir = dir
		build.Env = append(os.Environ(), "GOWORK=off")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, page := range listingPages {
		t.Run(page, func(t *testing.T) { checkPage(t, page, program, listings, shown) })
	}
	for name := range listings {
		if !shown[name] {
			t.Errorf("no page shows %s", name)
		}
	}
}

// checkPage checks the listings of a page, and notes which it shows. Blocks of no language, and Go
// without a name, are left alone.
func checkPage(t *testing.T, page, program string, listings map[string]listing, shown map[string]bool) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	name, dir := "", t.TempDir()
	got := blocks.ReplaceAllStringFunc(string(text), func(block string) string {
		m := blocks.FindStringSubmatch(block)
		want, mark := "", ""
		switch {
		case m[2] == "go" && m[1] != "":
			name = m[1]
			if _, ok := listings[name]; !ok {
				t.Errorf("a listing is called %q, which is no function of the tutorial's code:\n%s", name, m[3])
				return block
			}
			want, mark, shown[name] = listings[name].code, "<!-- "+name+" -->\n", true
		case m[2] == "text":
			want = listings[name].output
		case m[2] == "console":
			want = console(t, program, dir, m[3])
		case m[2] == "":
			return block
		case page != "tutorial.md":
			name = ""
			return block
		default:
			t.Errorf("a block is neither go with a name nor text nor console:\n%s", block)
			return block
		}
		if measured.ReplaceAllString(want, "…") == measured.ReplaceAllString(m[3], "…") {
			return block
		}
		if !*update {
			t.Errorf("%s: the document has\n%s\nbut it is\n%s", name, m[3], want)
		}
		return mark + "```" + m[2] + "\n" + want + "```\n"
	})
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// console runs the commands of a block in a folder, lines that begin with "$ nnopt" or "$ relalg", the
// example, and returns the block with what they print, errors last. A line "$ cat FILE <<END" makes a file of the lines
// up to END. The folder nnet3 of the project is there, too.
func console(t *testing.T, program, dir, block string) string {
	t.Helper()
	for _, name := range []string{"nnet3", "tool"} {
		if err := os.Symlink(filepath.Join(root(t), name), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	var b, file strings.Builder
	name, inFile := "", false
	for line := range strings.Lines(block) {
		if inFile {
			b.WriteString(line)
			if inFile = line != "END\n"; inFile {
				file.WriteString(line)
			} else if err := os.WriteFile(filepath.Join(dir, name), []byte(file.String()), 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if m := heredoc.FindStringSubmatch(line); m != nil {
			name, inFile = m[1], true
			file.Reset()
			b.WriteString(line)
			continue
		}
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok || !strings.HasPrefix(command, "nnopt ") && !strings.HasPrefix(command, "relalg ") {
			continue
		}
		b.WriteString(line)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", program+"/"+command)
		cmd.Dir = dir
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil && stderr.Len() == 0 {
			t.Errorf("%s: %v", command, err)
		}
		b.Write(out)
		b.WriteString(stderr.String())
	}
	return b.String()
}

// TestTutorialPasses: a pass takes at most 15 lines in each of the three forms of the tutorial, and
// registering and querying it a line each.
func TestTutorialPasses(t *testing.T) {
	listings := readListings(t)
	for _, name := range []string{"Example_global", "Example_local", "Example_patternSub"} {
		code := listings[name].code
		if _, after, ok := strings.Cut(code, "tensor.OpFor(array.TrueDiv)\n"); ok { // the names of the ops
			code = after
		}
		pass, _, ok := strings.Cut(code, "\n\n")
		if n := strings.Count(pass, "\n") + 1; !ok || n > 15 || !strings.Contains(pass, "simplify := ") {
			t.Errorf("%s: the pass takes %d lines, want at most 15", name, n)
		}
	}
	for _, line := range []string{
		`check(db.Register("simplify", `, `optimizer, err := db.Build(optdb.Include("fast_run").Excluding("inplace"))`,
	} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(line) + `.*$`).MatchString(listings["Example_register"].code) {
			t.Errorf("Example_register has no line %s", line)
		}
	}
}
