package standard_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFailedOutput writes where there is no room. What is left of a file goes, but not a link, and
// so not a device.
func TestFailedOutput(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(full, link); err != nil {
		t.Fatal(err)
	}
	config := file(t, "net.config", smallConfig)
	for _, args := range [][]string{
		{"init", config, link},
		{"copy", compute + "lstmp.raw", link},
		{"profile", "--output=" + link, config},
		{"profile", "--format=html", "--output=" + link, config},
	} {
		nnopt(t, args...).fails(t, statusFault, "no space left")
		if _, err := os.Lstat(link); err != nil {
			t.Fatalf("%q has removed what it could not write to: %v", args, err)
		}
	}
}

// TestInputIsKept: no verb destroys what it reads.
func TestInputIsKept(t *testing.T) {
	config := file(t, "net.config", smallConfig)
	nnopt(t, "init", config, config).fails(t, statusUsage, "would be overwritten")
	nnopt(t, "profile", "--output="+config, config).fails(t, statusUsage, "would be overwritten")
	if readFile(t, config) != smallConfig {
		t.Error("the network has changed")
	}
}
