// Package docs holds the documentation against the code.
package docs

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/nnopt/nnopt/"

// A room is a row of the table of packages.
type room struct {
	name    string
	imports []string // packages of ours; "x and below" is kept as it is
	modules []string // others' modules, by the last part of their path or more
}

// pkg is what go list tells of a package.
type pkg struct {
	ImportPath string
	Imports    []string
}

// TestImports holds the table of packages in architecture.md against what the packages import, for
// every processor that has files of its own. A row allows no more than its package needs.
func TestImports(t *testing.T) {
	rooms := readRooms(t)
	byName := map[string]room{}
	for _, r := range rooms {
		if _, ok := byName[r.name]; ok {
			t.Errorf("architecture.md has two rows for %s", r.name)
		}
		byName[r.name] = r
	}
	seen := map[string]map[string]bool{} // by package: what it imports on any processor
	for _, arch := range []string{"amd64", "arm64"} {
		for _, p := range listPackages(t, arch) {
			name := strings.TrimPrefix(p.ImportPath, module)
			r, ok := byName[name]
			if seen[name] == nil {
				seen[name] = map[string]bool{}
			}
			for _, path := range p.Imports {
				seen[name][path] = true
			}
			if name == "docs" {
				continue
			}
			if !ok {
				t.Errorf("package %s has no row in architecture.md", name)
				continue
			}
			allowed := closure(byName, r)
			for _, path := range p.Imports {
				if ours, ok := strings.CutPrefix(path, module); ok {
					if !allowed["*"] && !allowed[ours] {
						t.Errorf("%s (%s) imports %s, which its row in architecture.md does not allow", name, arch, ours)
					}
				} else if strings.Contains(strings.Split(path, "/")[0], ".") && !slices.ContainsFunc(r.modules, func(m string) bool { return inModule(path, m) }) {
					t.Errorf("%s (%s) imports %s, a module that its row in architecture.md does not allow", name, arch, path)
				}
			}
		}
	}
	for _, r := range rooms {
		imports := seen[r.name]
		if imports == nil {
			t.Errorf("architecture.md has a row for %s, which is no package", r.name)
		}
		for _, i := range r.imports {
			allowed := closure(byName, room{imports: []string{i}})
			if i != "*" && !some(imports, func(path string) bool { return allowed[strings.TrimPrefix(path, module)] }) {
				t.Errorf("the row of %s in architecture.md allows %s, of which it imports nothing", r.name, i)
			}
		}
		for _, m := range r.modules {
			if !some(imports, func(path string) bool { return inModule(path, m) }) {
				t.Errorf("the row of %s in architecture.md allows the module %s, which it does not import", r.name, m)
			}
		}
	}
}

func some(set map[string]bool, holds func(string) bool) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(set)), holds)
}

// inModule reports whether an import path belongs to the module with the given short name.
func inModule(path, short string) bool {
	return strings.Contains("/"+path+"/", "/"+short+"/")
}

// closure returns the packages of ours that a room may import.
func closure(rooms map[string]room, r room) map[string]bool {
	allowed := map[string]bool{}
	below := map[string]bool{}
	todo := slices.Clone(r.imports)
	for len(todo) > 0 {
		name, isBelow := strings.CutSuffix(todo[0], " and below")
		todo = todo[1:]
		allowed[name] = true
		if isBelow && !below[name] {
			below[name] = true
			for _, i := range rooms[name].imports {
				todo = append(todo, strings.TrimSuffix(i, " and below")+" and below")
			}
		}
	}
	return allowed
}

// readRooms reads the table that follows the mark in architecture.md.
func readRooms(t *testing.T) []room {
	t.Helper()
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "<!-- imports:")
	if !ok {
		t.Fatal("architecture.md has no table of imports")
	}
	var rooms []room
	for line := range strings.Lines(table) {
		cells := tableCells(line)
		if len(cells) != 4 || !strings.HasPrefix(cells[0], "`") {
			if len(rooms) > 0 {
				break
			}
			continue
		}
		rooms = append(rooms, room{strings.Trim(cells[0], "`"), list(cells[2]), list(cells[3])})
	}
	if len(rooms) < 10 {
		t.Fatalf("the table in architecture.md has only %d rows", len(rooms))
	}
	return rooms
}

// tableCells splits a row of a table.
func tableCells(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") || len(line) < 2 {
		return nil
	}
	cells := strings.Split(line[1:len(line)-1], "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// list splits a cell at commas.
func list(cell string) []string {
	var items []string
	for _, s := range strings.Split(cell, ",") {
		if s = strings.TrimSpace(s); s != "" {
			items = append(items, s)
		}
	}
	return items
}

// listPackages runs go list for an architecture.
func listPackages(t *testing.T, arch string) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", module+"...")
	cmd.Env = append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// TestClosure: "and below" reaches through, a plain name does not.
func TestClosure(t *testing.T) {
	rooms := map[string]room{
		"a": {name: "a", imports: []string{"b and below", "e"}},
		"b": {name: "b", imports: []string{"c"}},
		"c": {name: "c", imports: []string{"d"}},
		"e": {name: "e", imports: []string{"f"}},
	}
	got := closure(rooms, rooms["a"])
	for name, want := range map[string]bool{"b": true, "c": true, "d": true, "e": true, "f": false, "a": false} {
		if got[name] != want {
			t.Errorf("may import %s: %v, want %v", name, got[name], want)
		}
	}
}

// TestDependencies: every module of go.mod has a row in dependencies.md, and every row a module.
func TestDependencies(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows, required []string
	for line := range strings.Lines(string(text)) {
		if cells := tableCells(line); len(cells) >= 2 && strings.Contains(cells[0], ".") {
			rows = append(rows, cells[0])
			if slices.Contains(cells[1:], "") {
				t.Errorf("dependencies.md gives no reason for %s", cells[0])
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:require)?\s+(\S+\.\S+/\S+) v\S+`).FindAllStringSubmatch(string(mod), -1) {
		required = append(required, m[1])
		if !slices.Contains(rows, m[1]) {
			t.Errorf("go.mod requires %s, which has no row in dependencies.md", m[1])
		}
	}
	for _, r := range rows {
		if !slices.Contains(required, r) {
			t.Errorf("dependencies.md has a row for %s, which go.mod does not require", r)
		}
	}
	if len(required) == 0 {
		t.Error("no requirement found in go.mod")
	}
}
