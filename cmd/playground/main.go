// Command playground writes one page that holds the whole optimizer: the page of "nnopt view" with
// the engine inside, compiled for WebAssembly. It works from disk and from any server of files, and
// sends nothing to the network.
//
//	go run ./cmd/playground --output playground.html
package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/standard"
)

// What the page has besides that of view: scripts and styles in page, and the program of the worker
// in worker.
//
//go:embed page worker
var files embed.FS

// Limits of the page.
const (
	maxPage   = 9_000_000 // bytes
	maxMemory = 2 << 30   // bytes that the engine may use
	wasmPage  = 64 << 10  // bytes
)

const module = "github.com/nnopt/nnopt/"

// first is what the page shows before anything is asked.
const first, variables = "(y + z)*x/(y + z) + tanh(x)*0", "x y z: vector"

func main() {
	output := flag.String("output", "playground.html", "Write the page to this file")
	flag.Parse()
	if err := run(context.Background(), *output); err != nil {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, output string) error {
	engine, support, err := build(ctx)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := write(ctx, &page, engine, support); err != nil {
		return err
	}
	if page.Len() > maxPage {
		return fmt.Errorf("the page has %d bytes, more than %d", page.Len(), maxPage)
	}
	fmt.Printf("%s: %d bytes, of them the engine %d, which is %d of WebAssembly\n", output, page.Len(), len(asText(lzma(engine))), len(engine))
	return fileio.Write(ctx, output, func(w io.Writer) error { _, err := w.Write(page.Bytes()); return err })
}

// build compiles the engine. support is Go's script that runs it.
func build(ctx context.Context) (engine []byte, support string, err error) {
	dir, err := os.MkdirTemp("", "nnopt-playground")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "engine.wasm")
	args := []string{"build", "-trimpath", "-ldflags=-s -w", "-o", name}
	// Without inlining the engine is a sixth smaller. What computes for long is left as it is.
	args = append(args, "-gcflags=all=-l")
	for _, hot := range []string{"runtime", "internal/...", "reflect", "sync/...", "strings", "slices", "sort", "maps", "encoding/json", "fmt", "strconv", "unicode/utf8", "bytes", "math/...",
		module + "internal/kernel/...", module + "tensor/array", module + "fgraph", module + "rewrite", module + "pattern", module + "optdb"} {
		args = append(args, "-gcflags="+hot+"=")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, module+"cmd/playground/engine")...)
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, "", fmt.Errorf("compiling the engine: %w", err)
	}
	engine, err = os.ReadFile(name)
	if err != nil {
		return nil, "", err
	}
	if engine, err = limited(engine, maxMemory/wasmPage); err != nil {
		return nil, "", err
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, "", err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	return engine, string(text), err
}

// limited returns a module whose memory has at most so many pages. Go's linker sets no limit, and a
// network that is too large would take all memory of the machine before anything says so.
func limited(module []byte, pages uint64) ([]byte, error) {
	const header, memory = 8, 5
	fault := errors.New("the module has no memory of its own")
	for at := header; at < len(module); {
		size, n := binary.Uvarint(module[at+1:])
		if n <= 0 || at+1+n+int(size) > len(module) {
			return nil, fault
		}
		body := module[at+1+n : at+1+n+int(size)]
		if module[at] != memory {
			at += 1 + n + int(size)
			continue
		}
		if len(body) < 3 || body[0] != 1 || body[1] != 0 {
			return nil, fault
		}
		with := binary.AppendUvarint(append([]byte{1, 1}, body[2:]...), pages)
		section := append(binary.AppendUvarint([]byte{memory}, uint64(len(with))), with...)
		return append(append(append([]byte(nil), module[:at]...), section...), module[at+1+n+int(size):]...), nil
	}
	return nil, fault
}

// write writes the page.
func write(ctx context.Context, w io.Writer, engine []byte, support string) error {
	worker := ""
	for _, name := range []string{"worker/files.js", "worker/lzma.js", "", "worker/worker.js"} {
		text := []byte(support)
		if name != "" {
			var err error
			if text, err = files.ReadFile(name); err != nil {
				return err
			}
		}
		worker += string(text) + "\n"
	}
	data := [][2]string{{"worker", worker}, {"engine", asText(lzma(engine))}}
	return tool.WriteLivePage(ctx, w, standard.Program{}.Config(), first, variables, files, data)
}
