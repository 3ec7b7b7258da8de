//go:build unix

package standard_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/internal/proctest"
	"github.com/nnopt/nnopt/tool/standard"
)

// asProgram is set in the environment of a process that is to be the program instead of its tests.
const asProgram = "NNOPT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		longtest.AsProgram()
		standard.Program{}.Main()
	}
	os.Exit(m.Run())
}

// program returns the command that runs the program in a process of its own, from a shell if there
// is one.
func program(shell string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	if shell != "" {
		cmd = exec.Command("sh", append([]string{"-c", shell, os.Args[0]}, args...)...)
	}
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// longEnough is what a process that has to end at once is given on a machine with much else to do.
const longEnough = 20 * time.Second

// fifo makes a FIFO.
func fifo(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o666); err != nil {
		t.Skip(err)
	}
	return name
}

// TestSignals: the first signal ends a verb wherever it waits, with status 1.
func TestSignals(t *testing.T) {
	t.Parallel()
	proctest.NeedsPrograms(t)
	config, model := file(t, "net.config", smallConfig), smallModel(t, smallRun)
	feats := "ark:" + file(t, "feats", smallFeatures)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}
	signals = slices.DeleteFunc(signals, func(s syscall.Signal) bool { return signal.Ignored(s) }) // SIGHUP is, under nohup
	for i, args := range [][]string{
		{"run", model, "ark:" + fifo(t), "ark:" + at("out")},
		{"run", model, "ark:-", "ark:" + at("out")},
		{"run", model, feats, "ark:" + fifo(t)},
		{"run", model, "ark:sleep 1000 |", "ark:" + at("out"), "--allow-pipes"},
		{"run", model, feats, "ark:| sleep 1000", "--allow-pipes"},
		{"run", fifo(t), feats, "ark:" + at("out")},
		{"run", "-", feats, "ark:" + at("out")},
		{"copy", "ark:" + fifo(t), "ark:" + at("out")},
		{"copy", "ark:-", "ark:" + at("out")},
		{"copy", "scp:" + file(t, "s", "a "+fifo(t)+"\n"), "ark:" + at("out")},
		{"copy", model, fifo(t)},
		{"copy", fifo(t), at("model")},
		{"init", config, fifo(t)},
		{"init", "-", at("model")},
		{"info", "-"},
		{"compile", "--request", fifo(t), config},
		{"compile", "--frames-per-chunk=4000000", "--query=none", config},
		{"profile", "--diff", fifo(t), config},
		{"profile", "--output", fifo(t), config},
		{"bench", "compile", "--request", fifo(t)},
	} {
		if !longtest.Enabled() && i%4 != 1 {
			continue
		}
		t.Run(strings.Join(args[:1], " ")+fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			cmd := program("", args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdin, err := cmd.StdinPipe() // which says nothing
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			time.Sleep(300 * time.Millisecond) // a signal that comes before the program is ready for it ends it as well
			sent := time.Now()
			cmd.Process.Signal(signals[i%len(signals)])
			select {
			case err := <-ended:
				if code := cmd.ProcessState.ExitCode(); code != statusFault && code != -1 {
					t.Errorf("status %d, %v: %s", code, err, stderr.String())
				}
				t.Logf("ended after %v: %s", time.Since(sent), stderr.String())
			case <-time.After(longEnough):
				cmd.Process.Kill()
				<-ended
				t.Fatalf("it goes on after the signal: %s", stderr.String())
			}
		})
	}
}

// endless makes copies of an utterance with other keys until ctx is done, or its reader is gone.
func endless(ctx context.Context, w io.Writer) {
	for i := 0; ctx.Err() == nil; i++ {
		if _, err := fmt.Fprintf(w, "utt%d  [\n  1 2\n  3 5 ]\n", i); err != nil {
			return
		}
	}
}

// TestSignalsWhole: what a run and a copy have written when a signal ends them is whole, and the
// script lists what the archive holds.
func TestSignalsWhole(t *testing.T) {
	proctest.NeedsPrograms(t)
	model := smallModel(t, smallRun)
	for i, args := range [][]string{{"run", "--workers=2", model, "ark:-"}, {"copy", "ark:-"}} {
		dir := t.TempDir()
		archive, script := filepath.Join(dir, "ark"), filepath.Join(dir, "scp")
		cmd := program("", append(args, "ark,scp:"+archive+","+script)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 6*longEnough)
		go endless(ctx, stdin)
		for ctx.Err() == nil {
			if info, err := os.Stat(script); err == nil && info.Size() > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		end := syscall.SIGTERM
		if i == 1 && !signal.Ignored(syscall.SIGHUP) {
			end = syscall.SIGHUP
		}
		cmd.Process.Signal(end)
		kill := time.AfterFunc(longEnough, func() { cmd.Process.Kill() })
		cmd.Wait()
		kill.Stop()
		cancel()
		if code := cmd.ProcessState.ExitCode(); code != statusFault {
			t.Errorf("status %d: %s", code, stderr.String())
		}
		a, s := keysOf(t, "ark:"+archive), keysOf(t, "scp:"+script)
		if a != s || !strings.HasPrefix(a, "utt0 utt1 ") {
			t.Errorf("%s: the archive has %d bytes of keys, the script %d", args[0], len(a), len(s))
		}
		contains(t, stderr.String(), "signal received")
	}
}

// TestFileLimit: where a file may not grow, as on a full disk, verbs leave what was there or what
// is whole, say what is lost and fail.
func TestFileLimit(t *testing.T) {
	proctest.NeedsPrograms(t)
	config := file(t, "net.config", smallConfig)
	const limited = `ulimit -f 1; exec "$0" "$@"` // blocks of 512 bytes
	old := strings.Repeat("old\n", 20)
	for _, args := range [][]string{
		{"copy", compute + "tdnnf.mdl"},
		{"init", config},
		{"profile", config, "--output"},
		{"profile", config, "--format=html", "--output"},
	} {
		name := file(t, "there", old)
		out, err := program(limited, append(args, name)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "too large") || !strings.Contains(string(out), "writing "+name) {
			t.Errorf("%q: %v, %s", args, err, out)
		}
		if readFile(t, name) != old {
			t.Errorf("%q has destroyed what it could not replace", args)
		}
		if entries, _ := os.ReadDir(filepath.Dir(name)); len(entries) != 1 {
			t.Errorf("%q leaves %v", args, entries)
		}
	}
	model, dir := smallModel(t, smallRun), t.TempDir()
	archive, script := filepath.Join(dir, "ark"), filepath.Join(dir, "scp")
	feats := "ark:" + file(t, "feats", strings.Repeat("utt  [\n  1 2\n  3 5 ]\n", 3000))
	for _, args := range [][]string{{"run", model, feats}, {"copy", feats}} {
		out, err := program(limited, append(args, "ark,scp:"+archive+","+script)...).CombinedOutput()
		a, s := keysOf(t, "ark:"+archive), keysOf(t, "scp:"+script)
		n := len(strings.Fields(a))
		if err == nil || n == 0 || a != s {
			t.Errorf("%q: %v, %d and %d bytes of keys, %s", args, err, len(a), len(s), out)
		}
		contains(t, string(out), fmt.Sprintf("%d ", n), "could not be written", "too large")
	}
}

// TestStandardOutput: standard output has no reader any more, or is closed.
func TestStandardOutput(t *testing.T) {
	longtest.Only(t)
	proctest.NeedsPrograms(t)
	model, feats := smallModel(t, smallRun), "ark:"+file(t, "feats", smallFeatures)
	for _, c := range []struct {
		shell  string
		args   []string
		wanted []string
	}{
		{`"$0" "$@" >&-`, []string{"run", model, feats, "ark:-"}, []string{"standard output is closed", "0 utterances scored", "3 could not be written"}},
		{`"$0" "$@" >&-`, []string{"copy", feats, "ark:-"}, []string{"standard output is closed", "0 objects", "3 could not be written"}},
		{`"$0" "$@" >&-`, []string{"copy", model, "-"}, []string{"standard output is closed"}},
		{`"$0" "$@" >&-`, []string{"init", file(t, "c", smallRun), "-"}, []string{"standard output is closed"}},
		{"", []string{"run", model, feats, "ark,t:-"}, []string{"broken pipe", "0 utterances scored", "3 could not be written"}},
		{"", []string{"compile", file(t, "c", smallConfig)}, nil},
		{"", []string{"passes"}, nil},
		{"", []string{"help"}, nil},
		{"", []string{"info", "--json", model}, nil},
		{`"$0" "$@" > /dev/null; echo status $? >&2`, []string{"run", model, feats, "ark:-"}, []string{"status 0", "3 utterances"}},
	} {
		cmd := program(c.shell, c.args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if c.shell == "" { // a pipe without a reader
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			defer w.Close()
			cmd.Stdout = w
		}
		err := cmd.Run()
		if !strings.Contains(c.shell, "/dev/null") && cmd.ProcessState.ExitCode() != statusFault {
			t.Errorf("%q: %v", c.args, err)
		}
		contains(t, stderr.String(), c.wanted...)
	}
}

// TestCommandsTold: of a command that fails the user sees what it said, and how much is not
// written.
func TestCommandsTold(t *testing.T) {
	model := smallModel(t, smallRun)
	feats := "ark:" + file(t, "feats", smallFeatures)
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		args   []string
		wanted []string
	}{
		{[]string{"run", model, feats, "ark:| nosuchcommand"}, []string{"nosuchcommand", "127", "not found", "0 utterances scored", "3 could not be written"}},
		{[]string{"run", model, feats, "ark:| cat > /dev/null; echo alas >&2; exit 3"}, []string{"exit status 3: alas", "3 could not be written"}},
		{[]string{"copy", feats, "ark:| nosuchcommand"}, []string{"nosuchcommand", "127", "0 objects copied, 3 could not be written"}},
		{[]string{"copy", model, "| nosuchcommand"}, []string{"nosuchcommand", "127"}},
		{[]string{"run", model, "ark:nosuchcommand |", "ark:" + out}, []string{"nosuchcommand", "127", "0 utterances"}},
		{[]string{"run", model, "ark:echo 'a [ 1 2 ]'; echo alas >&2; exit 3 |", "ark:" + out}, []string{"exit status 3: alas", "1 utterances scored"}},
		{[]string{"run", "nosuchcommand |", feats, "ark:" + out}, []string{"nosuchcommand", "127"}},
		{[]string{"copy", "cat " + model + "; exit 3 |", out}, []string{"exit status 3"}},
		{[]string{"copy", "ark:nosuchcommand |", "ark:" + out}, []string{"nosuchcommand", "127", "0 objects"}},
		{[]string{"copy", "scp:" + file(t, "s", "a echo '[ 1 2 ]'; exit 3 |\nb echo '[ 1 2 ]' |\n"), "ark:" + out}, []string{"exit status 3", "1 objects copied, 1 could not"}},
	} {
		nnopt(t, append(c.args, "--allow-pipes")...).fails(t, statusFault, c.wanted...)
	}
}

// TestOverwrite: a file is replaced as a whole, and nothing of the old one is left if the new one
// is shorter; links and permissions stay.
func TestOverwrite(t *testing.T) {
	config, model := file(t, "net.config", smallConfig), smallModel(t, smallRun)
	for _, args := range [][]string{{"copy", model}, {"init", config}, {"profile", config, "--format=json", "--output"}} {
		name := file(t, "there", strings.Repeat("old\n", 1e5))
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(name, link); err != nil {
			t.Skip(err)
		}
		os.Chmod(name, 0o604)
		nnopt(t, append(args, link)...).ok(t)
		info, err := os.Lstat(name)
		if err != nil || info.Mode().Perm() != 0o604 || info.Size() == 0 || strings.Contains(readFile(t, name), "old\n") {
			t.Errorf("%q: %v, %v", args, info, err)
		}
		if to, err := os.Readlink(link); to != name {
			t.Errorf("%q: the link is to %q, %v", args, to, err)
		}
	}
}

// TestLimits: no reader eats what never ends.
func TestLimits(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip(err)
	}
	config := file(t, "net.config", smallConfig)
	for _, args := range [][]string{
		{"compile", "--request=/dev/zero", config}, {"bench", "compile", "--request=/dev/zero"}, {"bench", "nnet3", "--request=/dev/zero"},
		{"profile", "--diff=/dev/zero", config}, {"profile", "--add=/dev/zero", config},
	} {
		nnopt(t, args...).fails(t, statusFault, "/dev/zero", "")
	}
	endless := file(t, "endless", "<Nnet3> \n")
	if err := os.Truncate(endless, 50<<30); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{{"info", endless}, {"copy", endless, os.DevNull}, {"compile", config, "--request", endless}} {
		nnopt(t, args...).fails(t, statusFault, endless)
	}
	unit := file(t, "unit", "#!/bin/sh\nyes\n")
	if err := os.Chmod(unit, 0o777); err != nil {
		t.Fatal(err)
	}
	cases := filepath.Join(filepath.Dir(config), "cases.json")
	request := `{"a": {"config": "net.config", "request": {"n": 1, "input_t": [-4, 13], "output_t": [0, 9, 3], "ivector_t": [0, 1], "outputs": ["output"]}}}`
	if err := os.WriteFile(cases, []byte(request), 0o666); err != nil {
		t.Fatal(err)
	}
	nnopt(t, "bench", "compile", "--json", "--request", cases, "--unit", unit).fails(t, statusFault, unit, "more than 4096 bytes")
}

// TestSteering: the contents of a file do not steer the terminal.
func TestSteering(t *testing.T) {
	const bad = "\x1b[31m\u202e\u2066\u009b\x7f\r"
	config := file(t, "net.config", smallConfig)
	saved := filepath.Join(t.TempDir(), "saved.json")
	nnopt(t, "profile", "--format=json", "--output", saved, config).ok(t)
	text := strings.ReplaceAll(readFile(t, saved), `"name": "`, `"name": "\n\t\u001b[31m\u202e\u2066\u009b\u007f\r`)
	steered := file(t, "steered.json", strings.ReplaceAll(text, `"class": "`, `"class": "\u202e`))
	model := smallModel(t, "input-node name=input dim=2\noutput-node name=output input=input\n")
	named := file(t, "named.raw", strings.Replace(readFile(t, model), "output-node name=output", "output-node name=out\u202eput\x1b[31m", 1))
	cases := file(t, "cases.json", `{"\u202ea\n": {"config": "none", "request": {}}}`)
	feats := file(t, "feats", "utt\u202e  [\n  1 2 3 ]\nutt\u2066 [ 1 ? ]\n")
	for _, args := range [][]string{
		{"profile", "--add", steered, config}, {"profile", "--diff", steered, config}, {"profile", "--format=json", "--add", steered, config},
		{"profile", "--format=html", "--add", steered, config}, {"profile", "--format=trace", "--add", steered, config},
		{"info", named}, {"info", "--json", named}, {"compile", named}, {"compile", "--diff", named}, {"compile", "--trace=all", named}, {"compile", "--both", "--debug-info", named},
		{"bench", "compile", "--request", cases}, {"run", model, "ark:" + feats, "ark:" + os.DevNull},
		{"copy", "ark:" + feats, "ark:" + os.DevNull}, {"info", "none" + bad}, {"nosuch" + bad},
		{"compile", "--outputs=" + bad, config}, {"compile", "--request=" + bad, config}, {"passes", "--explain", bad}, {"passes", "--query", bad},
	} {
		r := nnopt(t, args...)
		for _, out := range []string{r.stdout, r.stderr} {
			if i := strings.IndexAny(out, "\x1b\u202e\u2066\u009b\x7f\r"); i >= 0 {
				t.Errorf("%q prints %.60q", args, out[max(0, i-20):])
			}
		}
		if strings.Contains(r.stdout, "\n\t\\x1b") || strings.Contains(r.stdout, "\n\t\\u001b") {
			t.Errorf("%q: a name goes over two lines", args)
		}
	}
}
