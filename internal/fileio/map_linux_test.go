package fileio_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/fileio"
)

// residentCode returns how many kB of the machine code of this program are in memory.
func residentCode(t *testing.T) (kB int) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for s := bufio.NewScanner(f); s.Scan(); {
		line, n := s.Text(), 0
		if fields := strings.Fields(line); !strings.HasSuffix(fields[0], ":") {
			found = strings.HasSuffix(line, self) && fields[1] == "r-xp"
		} else if found && fields[0] == "Rss:" {
			if _, err := fmt.Sscan(fields[1], &n); err != nil {
				t.Fatal(err)
			}
			kB += n
		}
	}
	return kB
}

// TestForgetProgram: what it took to start is not in memory any more.
func TestForgetProgram(t *testing.T) {
	before := residentCode(t)
	fileio.ForgetProgram()
	if after := residentCode(t); after >= before {
		t.Errorf("%d kB, and %d before", after, before)
	}
}
