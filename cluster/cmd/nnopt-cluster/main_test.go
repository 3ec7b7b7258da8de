//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nnopt/nnopt/cluster"
	"github.com/nnopt/nnopt/cluster/internal/corpustest"
)

// asProgram makes the binary of the tests the program.
const asProgram = "NNOPT_CLUSTER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	leave, err := ownTemp()
	if err != nil {
		panic(err)
	}
	status := m.Run()
	leave()
	os.Exit(status)
}

// program returns the program, with what it prints.
func program(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	c.Stdout, c.Stderr = &out, &out
	c.WaitDelay = 10 * time.Second
	return c, &out
}

// run runs the program, which must end with a status, and returns what it printed.
func run(t *testing.T, status int, args ...string) string {
	t.Helper()
	c, out := program(t, args...)
	err := c.Run()
	if got := c.ProcessState.ExitCode(); got != status {
		t.Fatalf("%q: exit status %d, want %d (%v)\n%s", args, got, status, err, out.String())
	}
	return out.String()
}

// flags are those for the corpus.
func flags(c *corpustest.Corpus) []string {
	return []string{"score", "--ivectors=" + c.Ivectors, "--utt2spk=" + c.Speakers, "--utt2num-frames=" + c.FrameCounts,
		fmt.Sprint("--frames-per-shard=", corpustest.FramesPerArchive), "--json"}
}

// summary takes the summary from what the program printed.
func summary(t *testing.T, printed string) (s cluster.Summary) {
	t.Helper()
	if err := json.NewDecoder(strings.NewReader(printed[max(strings.Index(printed, "{"), 0):])).Decode(&s); err != nil {
		t.Fatalf("%v in %s", err, printed)
	}
	return s
}

// TestEnded: a job that is killed in the middle, or ended by a signal, leaves whole files, and the
// next run does only what was left. The job is certain to be in the middle: features of one
// utterance come from a FIFO without a writer.
func TestEnded(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			c := corpustest.New(t, 400)
			want := c.Run(t, 0, c.Features)
			late := c.Path("late.mat")
			if err := syscall.Mkfifo(late, 0o666); err != nil {
				t.Skip(err)
			}
			lines := append([]string{}, c.Lines...)
			lines[277] = c.Keys[277] + " " + late
			out := filepath.Join(t.TempDir(), "out")
			args := append(flags(c), c.Model, c.Script(t, "late.scp", lines), out)
			child, printed := program(t, args...)
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, filepath.Join(out, "shards", "*.json"), 2)
			before := make(map[string]time.Time)
			waitFor(t, filepath.Join(out, "shards", ".*.tmp"), 1)
			if err := child.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := child.Wait(); err == nil {
				t.Fatalf("it ended by itself: %s", printed)
			}
			done, _ := filepath.Glob(filepath.Join(out, "shards", "*.json"))
			for _, name := range done {
				before[name] = modified(t, name)
			}
			if _, err := os.Stat(filepath.Join(out, "out.scp")); err == nil {
				t.Error("there is a result")
			}

			os.Remove(late)
			corpustest.Nnopt(t, 0, "copy", c.Script(t, "one.scp", c.Lines[277:278]), c.Script(t, "to.scp", []string{c.Keys[277] + " " + late}))
			s := summary(t, run(t, 0, args...))
			if s.SkippedShards != len(done) || s.Shards != 8 || s.Utterances != 400 || s.RunUtterances != 400-50*len(done) {
				t.Errorf("%d shards were complete: %+v", len(done), s)
			}
			for name, at := range before {
				if now := modified(t, name); !now.Equal(at) {
					t.Errorf("%s was made again", name)
				}
			}
			corpustest.Same(t, filepath.Join(out, "out.scp"), want)
			if files, _ := filepath.Glob(filepath.Join(out, "shards", ".*")); len(files) > 0 {
				t.Errorf("left behind: %v", files)
			}
		})
	}
}

// waitFor waits until a number of files match a pattern.
func waitFor(t *testing.T, pattern string, files int) {
	t.Helper()
	for {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) >= files {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: %v", pattern, names)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func modified(t *testing.T, name string) time.Time {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

// TestWorkerProcess: workers may be other processes, which Beam starts with flags of its own.
func TestWorkerProcess(t *testing.T) {
	c := corpustest.New(t, 200)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker, pid := c.Path("worker.sh"), c.Path("pid")
	// What Beam's boot program does, for a binary that is there. Prism quotes the ID.
	corpustest.Write(t, worker, `#!/bin/sh
for a in "$@"; do
	case "$a" in
	--id=*) id=$(echo "${a#--id=}" | tr -d "'") ;;
	--provision_endpoint=*) at=$(echo "${a#--provision_endpoint=}" | tr -d "'") ;;
	esac
done
echo $$ >`+pid+`
cd /
`+asProgram+`=1 exec `+self+` --worker=true "--id=$id" --logging_endpoint=$at --control_endpoint=$at >/dev/null 2>&1
`)
	if err := os.Chmod(worker, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // Prism does not end it
		var n int
		if text, err := os.ReadFile(pid); err == nil {
			fmt.Sscan(string(text), &n)
			syscall.Kill(n, syscall.SIGKILL)
		}
	})
	out := filepath.Join(t.TempDir(), "out")
	printed := run(t, 0, append(flags(c), "--environment_type=PROCESS", `--environment_config={"command":"`+worker+`"}`, c.Model, c.Features, out)...)
	if s := summary(t, printed); s.RunUtterances != 200 || s.Metrics["models_loaded"] != 1 {
		t.Errorf("%+v", s)
	}
	if _, err := os.Stat(pid); err != nil {
		t.Error(err)
	}
	corpustest.Same(t, filepath.Join(out, "out.scp"), c.Run(t, 0, c.Features))
}

// TestTwoAtOnce: a directory has one job at a time. The second one ends at once, and the first one
// is not disturbed. It tells its progress.
func TestTwoAtOnce(t *testing.T) {
	c := corpustest.New(t, 100)
	late := c.Path("late.mat")
	if err := syscall.Mkfifo(late, 0o666); err != nil {
		t.Skip(err)
	}
	lines := append([]string{}, c.Lines...)
	lines[77] = c.Keys[77] + " " + late
	out := filepath.Join(t.TempDir(), "out")
	args := append(flags(c), "--looped", "--progress=1ms", c.Model, c.Script(t, "late.scp", lines), out)
	first, _ := program(t, args...)
	printed, err := os.Create(c.Path("printed"))
	if err != nil {
		t.Fatal(err)
	}
	defer printed.Close()
	first.Stdout, first.Stderr = printed, printed
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(strings.Join(corpustest.Lines(t, printed.Name()), "\n"), "1 of 2 shards, 1927 of 3854 frames, ") {
		time.Sleep(5 * time.Millisecond)
	}
	if got := run(t, 1, args...); !strings.Contains(got, "another job is at work") || !strings.Contains(got, out) {
		t.Errorf("the second job printed %s", got)
	}
	corpustest.Nnopt(t, 0, "copy", c.Script(t, "one.scp", c.Lines[77:78]), c.Script(t, "to.scp", []string{c.Keys[77] + " " + late}))
	if err := first.Wait(); err != nil {
		t.Fatal(err, corpustest.Lines(t, printed.Name()))
	}
	corpustest.Same(t, filepath.Join(out, "out.scp"), c.Run(t, 0, c.Features, "--looped"))
	if got := run(t, 2, append(flags(c), c.Model, c.Features, out)...); !strings.Contains(got, "looped is not set, and was true") {
		t.Errorf("another job printed %s", got)
	}
}

// TestFullDisk: where a file can't be written whole, the error names it, and no shard counts as
// complete. There is room again afterwards.
func TestFullDisk(t *testing.T) {
	c := corpustest.New(t, 100)
	out := filepath.Join(t.TempDir(), "out")
	args := append(flags(c), c.Model, c.Features, out)
	child, printed := program(t, args...)
	limited := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `ulimit -f 64; exec "$0" "$@"`, child.Path}, args...)...) // blocks of 512 bytes
	limited.Env, limited.Stdout, limited.Stderr = child.Env, printed, printed
	if err := limited.Run(); err == nil || !strings.Contains(printed.String(), "write "+out+"/shards/.") || !strings.Contains(printed.String(), "file too large") {
		t.Errorf("%v: %s", err, printed)
	}
	for _, pattern := range []string{"out.scp", "summary.json", "shards/*.json", "shards/*.ark", "shards/.*"} {
		if names, _ := filepath.Glob(filepath.Join(out, pattern)); len(names) > 0 {
			t.Errorf("there are %v", names)
		}
	}
	if s := summary(t, run(t, 0, args...)); s.RunUtterances != 100 {
		t.Errorf("%+v", s)
	}
	corpustest.Same(t, filepath.Join(out, "out.scp"), c.Run(t, 0, c.Features))
}

// TestReadme: the commands of README.md print what it says.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(text), 3)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	commands := strings.Split(strings.TrimSpace(blocks[0][1]), "\n")
	if len(commands) != 2 || commands[0] != "go build -o /tmp/nnopt-cluster ./cmd/nnopt-cluster" {
		t.Fatalf("commands %q", commands)
	}
	words := strings.Fields(commands[1])
	out := filepath.Join(t.TempDir(), "scored")
	words[len(words)-1] = out
	c, printed := program(t, words[1:]...)
	c.Dir = "../.."
	if err := c.Run(); err != nil {
		t.Fatal(err, printed.String())
	}
	script := strings.Join(corpustest.Lines(t, filepath.Join(out, "out.scp")), "\n") + "\n"
	for i, got := range []string{printed.String(), strings.ReplaceAll(script, out, "/tmp/scored")} {
		if got, want := steady(got), steady(blocks[i+1][1]); got != want {
			t.Errorf("printed:\n%s\nwant:\n%s", got, want)
		}
	}
}

// steady removes times, and the digest of names that differ from folder to folder.
func steady(text string) string {
	text = regexp.MustCompile(`in [0-9.]+ s \([0-9]+ `).ReplaceAllString(text, "in T s (N ")
	return regexp.MustCompile(`[0-9a-f]{20}\.`).ReplaceAllString(text, "")
}

// TestUsage: wrong flags, and jobs that don't fit, end with status 2, and faults with 1.
func TestUsage(t *testing.T) {
	c := corpustest.New(t, 20)
	out := filepath.Join(t.TempDir(), "out")
	job := []string{c.Model, c.Features, out}
	for _, v := range []struct {
		status int
		args   []string
		want   string
	}{
		{2, []string{"score"}, "MODEL FEATS OUT expected"},
		{2, append([]string{"score", "--runner=nobody"}, job...), "want one of prism"},
		{2, append([]string{"score", "--async"}, job...), "outside of this process"},
		{2, append([]string{"score", "--parallelism=many"}, job...), "parallelism"},
		{2, append([]string{"score", "--frames-per-shart=1"}, job...), "did you mean"},
		{2, append([]string{"score", "--acoustic-scale=0"}, job...), "other than 0"},
		{2, append([]string{"score", "--query=+nothing_such"}, job...), "nothing_such"},
		{2, append([]string{"score"}, job...), "needs i-vectors"},
		{2, append([]string{"score", "--frames-per-chunk=-1"}, job...), "frames-per-chunk"},
		{2, append([]string{"score", "--looped", "--minibatch-size=3"}, job...), "no meaning with --looped"},
		{2, append([]string{"score", "--progress=-1s"}, job...), "negative"},
		{2, append(flags(c), "--max-frames=-1", c.Model, c.Features, out), "max-frames"},
		{1, append(flags(c), c.Model, c.Features, "nowhere://bucket/out"), "nowhere"},
		{1, append(flags(c), c.Path("none"), c.Features, out), "no such file"},
		{1, append(flags(c), c.Model, c.Script(t, "gone.scp", []string{c.Keys[0] + " " + c.Path("none")}), out), "none of 1 utterances"},
		{1, append(flags(c), c.Model, c.Script(t, "half.scp", []string{c.Lines[0], c.Keys[1] + " cat x |"}), out), "allow-pipes allows it"},
		{1, append(append(flags(c), "--runner=universal"), job...), "endpoint"},
		{0, []string{"help", "score"}, "--environment-type"},
	} {
		if got := run(t, v.status, v.args...); !strings.Contains(got, v.want) {
			t.Errorf("%q: want %q in\n%s", v.args, v.want, got)
		}
	}
}
