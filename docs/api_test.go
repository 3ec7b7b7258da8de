package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAPI compares the exported names of all packages that other modules can import with api.txt, so that every
// change of what users may rely on is seen as one. Test support is not part of it, graphtest excepted.
func TestAPI(t *testing.T) {
	var got []string
	for _, r := range readRooms(t) {
		if strings.Contains(r.name, "internal") || strings.HasPrefix(r.name, "cmd/") || strings.HasPrefix(r.name, "docs/") || strings.HasSuffix(r.name, "test") && r.name != "optdb/graphtest" {
			continue
		}
		got = append(got, exportedNames(t, r.name)...)
	}
	slices.Sort(got)
	got = slices.Compact(got) // what each system has a file for
	if *update {
		if err := os.WriteFile("api.txt", []byte(strings.Join(got, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("api.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, name := range got {
		if _, ok := slices.BinarySearch(want, name); !ok {
			t.Errorf("%s is new", name)
		}
	}
	for _, name := range want {
		if _, ok := slices.BinarySearch(got, name); !ok {
			t.Errorf("%s is gone", name)
		}
	}
	if t.Failed() {
		t.Log("if that is meant, rewrite api.txt: go test ./docs -run TestAPI -update")
	}
}

// exportedNames lists the exported names of a package, with those of methods and fields, as "fgraph Apply.Inputs". A type
// that is another name for one of an internal package has the methods and fields of that.
func exportedNames(t *testing.T, pkg string) []string {
	files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	add := func(parts ...string) {
		for _, p := range parts {
			if !ast.IsExported(p) {
				return
			}
		}
		names = append(names, pkg+" "+strings.Join(parts, "."))
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil {
					add(n.Name.Name)
				} else {
					add(receiver(n.Recv.List[0].Type), n.Name.Name)
				}
				return false
			case *ast.ValueSpec:
				for _, name := range n.Names {
					add(name.Name)
				}
				return false
			case *ast.TypeSpec:
				add(n.Name.Name)
				if sel, ok := n.Type.(*ast.SelectorExpr); ok && n.Assign.IsValid() {
					for _, i := range f.Imports {
						path, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module)
						if ours && strings.Contains(path, "internal") && filepath.Base(path) == sel.X.(*ast.Ident).Name {
							for _, name := range exportedNames(t, path) {
								if member, ok := strings.CutPrefix(name, path+" "+sel.Sel.Name+"."); ok {
									add(n.Name.Name, member)
								}
							}
						}
					}
				}
				members := new(ast.FieldList)
				switch typ := n.Type.(type) {
				case *ast.StructType:
					members = typ.Fields
				case *ast.InterfaceType:
					members = typ.Methods
				}
				for _, m := range members.List {
					for _, name := range m.Names {
						add(n.Name.Name, name.Name)
					}
				}
				return false
			}
			return true
		})
	}
	return names
}

// receiver returns the name of the type of a receiver.
func receiver(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.StarExpr:
		return receiver(typ.X)
	case *ast.IndexExpr:
		return receiver(typ.X)
	case *ast.IndexListExpr:
		return receiver(typ.X)
	}
	return typ.(*ast.Ident).Name
}
