package main

import (
	"bytes"
	"os"
	"testing"
)

// What is checked in is what is generated.
func TestFilesAreCurrent(t *testing.T) {
	for name, want := range generate() {
		got, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what is generated: run go generate in kernel", name)
		}
	}
}
