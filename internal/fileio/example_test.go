package fileio_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
)

func ExampleReadAll() {
	text, err := fileio.ReadAll(strings.NewReader("short"), "input", 10)
	fmt.Printf("%s %v\n", text, err)
	_, err = fileio.ReadAll(strings.NewReader("much too long"), "input", 10)
	fmt.Println(err)
	// Output:
	// short <nil>
	// input has more than 10 bytes, the limit
}

// A file is replaced completely or not at all.
func ExampleWrite() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "settings")
	for _, text := range []string{"first", "second"} {
		err := fileio.Write(context.Background(), name, func(w io.Writer) error {
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
			if text == "second" {
				return io.ErrUnexpectedEOF
			}
			return nil
		})
		fmt.Println(err == nil)
	}
	text, _ := fileio.ReadFile(name, fileio.MaxText)
	fmt.Printf("%s\n", text)
	// Output:
	// true
	// false
	// first
}

func ExamplePlainName() {
	fmt.Println(fileio.PlainName("red\x1b[31m\n"))
	// Output: red\x1b[31m\n
}
