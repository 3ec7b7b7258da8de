package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/cluster/internal/corpustest"
	"github.com/nnopt/nnopt/exec/decodable"
)

// jobFor returns a job with the flags that corpustest.Corpus.Run has by default.
func jobFor(t testing.TB, c *corpustest.Corpus) Job {
	return Job{
		Model: c.Model, Features: c.Features, Ivectors: c.Ivectors, Speakers: c.Speakers, Out: filepath.Join(t.TempDir(), "out"),
		Query: "+fast_run", Scoring: decodable.Options{FramesPerChunk: 50, AcousticScale: 1}, FramesPerShard: corpustest.FramesPerArchive,
	}
}

// score runs a job, which must succeed.
func score(t testing.TB, j Job) *Summary {
	t.Helper()
	s, err := Score(t.Context(), j, func(note string) { t.Log(note) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (j *Job) script() string { return join(j.Out, outFile) }

// TestScore: 2,000 utterances in 40 shards have the bits that nnopt run gives, the model is loaded
// once, and a second run does nothing. Another option is refused, and in another directory it does
// everything again.
func TestScore(t *testing.T) {
	c := corpustest.New(t, 2000)
	j := jobFor(t, c)
	s := score(t, j)
	if s.Utterances != 2000 || s.Failed != 0 || s.Shards != 40 || s.SkippedShards != 0 || s.RunUtterances != 2000 || s.Frames != 40*corpustest.FramesPerArchive {
		t.Errorf("summary %+v", s)
	}
	for name, want := range map[string]int64{
		"utterances": 2000, "frames": s.Frames, "shards": 40, "models_loaded": 1, "failures": 0, "skipped_shards": 0, "repeated_reads": 0,
	} {
		if got := s.Metrics[name]; got != want {
			t.Errorf("counter %s is %d, want %d", name, got, want)
		}
	}
	if s.Metrics["milliseconds"] < 1 || s.ShardSeconds <= 0 || s.ComputeSeconds <= 0 {
		t.Errorf("no time has passed: %+v", s)
	}
	keys := corpustest.Same(t, j.script(), c.Run(t, 0, c.Features))
	if len(keys) != 2000 {
		t.Errorf("%d utterances", len(keys))
	}
	before := snapshot(t, j.Out)
	if frames := earlierFrames(t.Context(), must(newWork(&j, "")), must(readHead(t.Context(), must(newWork(&j, "")))).FeaturesSum, []entry{{Key: "other"}}); frames != nil {
		t.Error("frames of another script are taken")
	}
	s = score(t, j)
	if s.SkippedShards != 40 || s.RunUtterances != 0 || s.Utterances != 2000 || s.Metrics["skipped_shards"] != 40 || s.Metrics["models_loaded"] != 0 {
		t.Errorf("second run: summary %+v", s)
	}
	if after := snapshot(t, j.Out); after != before {
		t.Errorf("files before:\n%s\nand after a second run:\n%s", before, after)
	}
	if got, want := corpustest.Lines(t, filepath.Join(j.Out, framesFile)), corpustest.Lines(t, c.Path("utt2num_frames")); !slices.Equal(got, want) {
		t.Errorf("frames %q, want %q", got, want)
	}
	j.Scoring.AcousticScale = 0.5
	if _, err := Score(t.Context(), j, nil); !errors.Is(err, ErrJob) || !strings.Contains(err.Error(), "options.AcousticScale is 0.5, and was 1") {
		t.Errorf("another option in the same directory: %v", err)
	}
	if after := snapshot(t, j.Out); after != before {
		t.Errorf("files before:\n%s\nand after a job that was refused:\n%s", before, after)
	}
	j.Out += "2"
	if s = score(t, j); s.SkippedShards != 0 || s.RunUtterances != 2000 {
		t.Errorf("another option: summary %+v", s)
	}
	corpustest.Same(t, j.script(), c.Run(t, 0, c.Features, "--acoustic-scale=0.5"))
}

// snapshot lists the files of shards, with sizes and times, and the text of the results.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, shardsDir))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&text, f.Name(), info.Size(), info.ModTime().UnixNano())
	}
	for _, name := range []string{outFile, failuresFile, framesFile} {
		fmt.Fprintln(&text, strings.Join(corpustest.Lines(t, filepath.Join(dir, name)), "\n"))
	}
	return text.String()
}

// TestOptions: options of run mean the same here.
func TestOptions(t *testing.T) {
	c := corpustest.New(t, 60)
	initial := 3
	for name, v := range map[string]struct {
		flags  []string
		change func(*Job)
	}{
		"chunks":      {[]string{"--frames-per-chunk=20", "--frame-subsampling-factor=3"}, func(j *Job) { j.Scoring.FramesPerChunk, j.Scoring.FrameSubsampling = 20, 3 }},
		"contexts":    {[]string{"--extra-left-context=2", "--extra-left-context-initial=3"}, func(j *Job) { j.Scoring.ExtraLeftContext, j.Scoring.ExtraLeftContextInitial = 2, &initial }},
		"exponential": {[]string{"--apply-exp", "--query=none"}, func(j *Job) { j.Scoring.ApplyExp, j.Query = true, "none" }},
		"looped":      {[]string{"--looped"}, func(j *Job) { j.Scoring.FramesPerChunk, j.Looped = 24, true }},
		"looped contexts": {[]string{"--looped", "--frames-per-chunk=9", "--frame-subsampling-factor=3", "--extra-left-context-initial=3", "--acoustic-scale=0.1"}, func(j *Job) {
			j.Scoring = decodable.Options{FramesPerChunk: 9, FrameSubsampling: 3, ExtraLeftContextInitial: &initial, AcousticScale: 0.1}
			j.Looped = true
		}},
		"one worker": {nil, func(j *Job) { j.Workers, j.FrameCounts = 1, c.FrameCounts }},
	} {
		t.Run(name, func(t *testing.T) {
			j := jobFor(t, c)
			v.change(&j)
			score(t, j)
			corpustest.Same(t, j.script(), c.Run(t, 0, c.Features, v.flags...))
		})
	}
}

// recurrent is a network whose rows depend on all that is before them.
const recurrent = `
input-node name=input dim=12
input-node name=ivector dim=5
component name=affine type=NaturalGradientAffineComponent input-dim=33 output-dim=16
component-node name=affine component=affine input=Append(input, ReplaceIndex(ivector, t, 0), IfDefined(Offset(squash, -3)))
component name=squash type=TanhComponent dim=16
component-node name=squash component=squash input=affine
output-node name=output input=squash
output-node name=output-xent input=affine
`

// TestRecurrent: streams have the rows of nnopt run, also where they depend on all that is before
// them, and differ from those of chunks.
func TestRecurrent(t *testing.T) {
	c := corpustest.New(t, 60)
	corpustest.Write(t, c.Path("recurrent.config"), recurrent)
	c.Model = c.Path("recurrent.raw")
	corpustest.Nnopt(t, 0, "init", c.Path("recurrent.config"), c.Model)
	j := jobFor(t, c)
	j.Scoring.FramesPerChunk, j.Looped, j.FramesPerShard = 10, true, 1<<20
	score(t, j)
	corpustest.Same(t, j.script(), c.Run(t, 0, c.Features, "--looped", "--frames-per-chunk=10"))
	streams := must(os.ReadFile(must(filepath.Glob(filepath.Join(j.Out, shardsDir, "*.ark")))[0]))
	j = jobFor(t, c)
	j.Scoring.FramesPerChunk, j.FramesPerShard = 10, 1<<20
	score(t, j)
	corpustest.Same(t, j.script(), c.Run(t, 0, c.Features, "--frames-per-chunk=10"))
	if chunks := must(os.ReadFile(must(filepath.Glob(filepath.Join(j.Out, shardsDir, "*.ark")))[0])); slices.Equal(streams, chunks) {
		t.Error("streams and chunks have the same rows")
	}
}

const flakyEvery = 10

// flaky makes a script in which features of every tenth utterance come from a command that fails at
// first, half of them after some of their bytes.
func flaky(t *testing.T, c *corpustest.Corpus, rnd *rand.Rand) (lines []string, failing int64) {
	t.Helper()
	corpustest.Write(t, c.Path("read.sh"), `
if [ -e "$1.nothing" ]; then rm "$1.nothing"; echo "the disk is away" >&2; exit 5; fi
if [ -e "$1.half" ]; then rm "$1.half"; head -c 100 "$1"; exit 5; fi
exec cat "$1"
`)
	var wanted []string
	for i, line := range c.Lines {
		if i%flakyEvery == 0 {
			wanted = append(wanted, line)
		}
	}
	corpustest.Nnopt(t, 0, "copy", c.Script(t, "wanted.scp", wanted), "ark,scp:"+c.Path("flaky.ark")+","+c.Path("flaky.scp"))
	for i, line := range c.Lines {
		if i%flakyEvery != 0 {
			lines = append(lines, line)
			continue
		}
		file := c.Path(c.Keys[i] + ".mat")
		corpustest.Nnopt(t, 0, "copy", c.Script(t, "one.scp", []string{line}), "scp:"+strings.TrimPrefix(c.Script(t, "to.scp", []string{c.Keys[i] + " " + file}), "scp:"))
		for _, how := range []string{".nothing", ".half"} {
			if rnd.IntN(5) == 0 {
				corpustest.Write(t, file+how, "")
				failing++
			}
		}
		lines = append(lines, fmt.Sprintf("%s sh %s %s |", c.Keys[i], c.Path("read.sh"), file))
	}
	return lines, failing
}

// TestFaults: reads that fail one time in five, a corrupt archive and missing files lose nothing
// that could be scored, and the table of failures has the rest.
func TestFaults(t *testing.T) {
	c := corpustest.New(t, 2000)
	lines, failing := flaky(t, c, rand.New(rand.NewPCG(3, 4)))
	if failing < 50 {
		t.Fatalf("only %d reads fail", failing)
	}
	bad := map[string]string{} // reasons
	archive := c.Path("feats.2.ark")
	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	for i := 100; i < 150; i++ { // the middle of an archive is overwritten, and its end is missing
		_, object, _ := strings.Cut(c.Lines[i], archive+":")
		var at int
		fmt.Sscan(object, &at)
		if i%flakyEvery != 0 && i < 120 {
			copy(text[at:], "\x00BXX")
			bad[c.Keys[i]] = "expected one of the tokens"
		}
		if i == 131 {
			text = text[:at+20]
		}
		if i%flakyEvery != 0 && i >= 131 {
			bad[c.Keys[i]] = "ends too early"
		}
	}
	corpustest.Write(t, archive, string(text))
	for i := 201; i < 205; i++ {
		lines[i] = c.Keys[i] + " " + c.Path("none.ark") + ":9"
		bad[c.Keys[i]] = "no such file"
	}
	lines[301] = c.Keys[301]
	bad[c.Keys[301]] = "a key and nothing else"
	speakers := corpustest.Lines(t, strings.TrimPrefix(c.Speakers, "ark:"))
	corpustest.Write(t, strings.TrimPrefix(c.Speakers, "ark:"), strings.Join(append(speakers[:302:302], speakers[303:]...), "\n")+"\n")
	bad[c.Keys[302]] = "no speaker"

	j := jobFor(t, c)
	j.Features, j.FrameCounts, j.AllowPipes = c.Script(t, "faulty.scp", lines), c.FrameCounts, true
	s := score(t, j)
	if s.Utterances != 2000-len(bad) || s.Failed != len(bad) || s.RepeatedReads < failing || s.Metrics["failures"] != int64(len(bad)) {
		t.Errorf("summary %+v, with %d bad utterances and %d reads that fail", s, len(bad), failing)
	}
	checkFailures(t, &j, bad)
	var good []string
	for i, line := range c.Lines {
		if bad[c.Keys[i]] == "" && i%flakyEvery != 0 {
			good = append(good, line)
		} else if i%flakyEvery == 0 {
			good = append(good, c.Keys[i]+" "+c.Path(c.Keys[i]+".mat"))
		}
	}
	corpustest.Same(t, j.script(), c.Run(t, 0, c.Script(t, "good.scp", good)))

	// What has failed can be tried again, by itself.
	if again := score(t, j); again.SkippedShards != s.Shards || again.Failed != len(bad) {
		t.Errorf("second run: %+v", again)
	}
	corpustest.Write(t, c.Path("none.ark"), string(must(os.ReadFile(c.Path("feats.4.ark")))))
	for i := 201; i < 205; i++ {
		delete(bad, c.Keys[i])
	}
	j.RetryFailed = true
	again := score(t, j)
	if again.Failed != len(bad) || again.SkippedShards < s.Shards-4 || again.SkippedShards >= s.Shards {
		t.Errorf("after a repair: %+v, want %d failures", again, len(bad))
	}
	checkFailures(t, &j, bad)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// checkFailures compares the table of failures with the wanted reasons.
func checkFailures(t *testing.T, j *Job, want map[string]string) {
	t.Helper()
	got := corpustest.Lines(t, filepath.Join(j.Out, failuresFile))
	if len(got) != len(want) {
		t.Errorf("%d failures, want %d", len(got), len(want))
	}
	for _, line := range got {
		words := strings.SplitN(line, " ", 3)
		if reason := want[words[0]]; reason == "" || !strings.Contains(words[2], reason) {
			t.Errorf("failure %q, want reason %q", line, reason)
		}
		if _, err := os.Stat(filepath.Join(j.Out, shardsDir, words[1]+".json")); err != nil {
			t.Error(err)
		}
	}
}

// TestBadJobs: what is wrong is said before anything is scored.
func TestBadJobs(t *testing.T) {
	c := corpustest.New(t, 10)
	empty, binary, endless := c.Script(t, "empty.scp", nil), c.Path("feats.0.ark"), c.Script(t, "endless.scp", []string{strings.Repeat("x", maxLine)})
	corpustest.Write(t, c.Path("empty.scp"), "")
	for name, v := range map[string]struct {
		change func(*Job)
		want   string
	}{
		"no model":          {func(j *Job) { j.Model = c.Path("none") }, "no such file"},
		"not a model":       {func(j *Job) { j.Model = c.Path("net.config") }, "not a model"},
		"standard input":    {func(j *Job) { j.Model = "-" }, "must be a file"},
		"no directory":      {func(j *Job) { j.Out = "" }, "directory"},
		"file as directory": {func(j *Job) { j.Out = c.Model }, "not a directory"},
		"archive":           {func(j *Job) { j.Features = "ark:" + binary }, "script"},
		"archive as script": {func(j *Job) { j.Features = "scp:" + binary }, "is it an archive"},
		"archive, ivectors": {func(j *Job) { j.Ivectors = "ark:" + binary }, "script"},
		"permissive":        {func(j *Job) { j.Features = "scp,p:" + binary }, "option p"},
		"no specifier":      {func(j *Job) { j.Features = binary }, "malformed specifier"},
		"no script":         {func(j *Job) { j.Features = "scp:" + c.Path("none") }, "no such file"},
		"endless line":      {func(j *Job) { j.Features = endless }, "line 1 has more than"},
		"empty":             {func(j *Job) { j.Features = empty }, "no utterances"},
		"no i-vectors":      {func(j *Job) { j.Ivectors, j.Speakers = "", "" }, "needs i-vectors of 5"},
		"two i-vectors":     {func(j *Job) { j.OnlineIvectors = j.Ivectors }, "not both"},
		"only speakers":     {func(j *Job) { j.Ivectors = "" }, "need ivectors"},
		"no period":         {func(j *Job) { j.Ivectors, j.Speakers, j.OnlineIvectors = "", "", c.Features }, "period"},
		"frames":            {func(j *Job) { j.FrameCounts = c.Speakers }, "not a number of frames"},
		"looped":            {func(j *Job) { j.Looped, j.Scoring.MinibatchSize = true, 3 }, "no meaning"},
		"frames at most":    {func(j *Job) { j.MaxFrames = -1 }, "negative"},
		"limit":             {func(j *Job) { j.Limit = -1 }, "negative"},
		"scheme":            {func(j *Job) { j.Out = "nowhere://x/out" }, "nowhere"},
		"Beam's own scheme": {func(j *Job) { j.Out = "default://x/out" }, "unknown scheme"},
		"pattern":           {func(j *Job) { j.Out = "memfs://x/out*" }, "pattern"},
		"features' scheme":  {func(j *Job) { j.Features = "scp:nowhere://x" }, "nowhere"},
		"shards":            {func(j *Job) { j.FramesPerShard = -1 }, "negative"},
		"query":             {func(j *Job) { j.Query = "+nothing_such" }, "nothing_such"},
		"chunks":            {func(j *Job) { j.Scoring.FramesPerChunk = -1 }, "frames-per-chunk"},
		"priors":            {func(j *Job) { j.UsePriors = true }, "without priors"},
		"own priors":        {func(j *Job) { j.Scoring.Priors = []float32{1} }, "UsePriors"},
	} {
		j := jobFor(t, c)
		v.change(&j)
		if _, err := Score(t.Context(), j, nil); err == nil || !strings.Contains(err.Error(), v.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, v.want)
		}
		if _, err := os.Stat(filepath.Join(j.Out, outFile)); j.Out != "" && err == nil {
			t.Errorf("%s: there is a result", name)
		}
	}
	j := jobFor(t, c)
	score(t, j)
	j.Features = "scp:" + j.script()
	if _, err := Score(t.Context(), j, nil); err == nil || !strings.Contains(err.Error(), "would be overwritten") {
		t.Errorf("a result as features: %v", err)
	}
	j = jobFor(t, c)
	j.Scoring.FramesPerChunk = -1
	if _, err := Score(t.Context(), j, nil); !errors.Is(err, decodable.ErrOptions) {
		t.Errorf("error %v is not decodable.ErrOptions", err)
	}
}
