package standard_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/onnx"
)

// readExported reads a model, and returns its inputs and outputs with their types, and its metadata.
func readExported(t *testing.T, name string) (ports []string, metadata map[string]string) {
	t.Helper()
	m, err := onnx.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := onnx.Check(m); err != nil {
		t.Fatal(err)
	}
	for _, v := range slices.Concat(m.Graph.Inputs, m.Graph.Outputs) {
		ports = append(ports, v.Name+" "+v.Type.String())
	}
	metadata = make(map[string]string)
	for _, e := range m.Metadata {
		metadata[e.Key] = e.Value
	}
	return ports, metadata
}

// TestExport: the model of a chunk has the nodes of the network as inputs and outputs, for any number
// of sequences, and says which rows they have.
func TestExport(t *testing.T) {
	config, out := file(t, "net.config", smallConfig), filepath.Join(t.TempDir(), "chunk.onnx")
	said := nnopt(t, "export", "--output="+out, "--frames-per-chunk=21", "--frame-subsampling-factor=3", "--extra-left-context=2", config).ok(t).stderr
	ports := []string{"ivector float[sequences, 1, 3]", "input float[sequences, 31, 4]", "output float[sequences, 7, 5]"}
	got, metadata := readExported(t, out)
	if !slices.Equal(got, ports) {
		t.Errorf("the model has %q, want %q", got, ports)
	}
	contains(t, said, append(ports, out)...)
	for key, want := range map[string]string{
		"left_context": "4", "right_context": "4", "frames_per_chunk": "21", "frame_subsampling_factor": "3",
		"rows.input": "-6:25", "rows.ivector": "0", "rows.output": "0:21:3",
	} {
		if got := metadata["nnet3."+key]; got != want {
			t.Errorf("nnet3.%s is %q, want %q", key, got, want)
		}
	}
	// What was written is a model for the other verbs.
	contains(t, nnopt(t, "eval", "--shape=input=2x31x4", "--shape=ivector=2x1x3", out).ok(t).stdout, "[2, 7, 5]")

	// A request with several sequences is one for any number of them, and derivatives are left out.
	request := file(t, "request.json", `{"r": {"inputs": [{"name": "input", "indexes": [[0,-4,0],[1,-4,0],[0,-3,0],[1,-3,0],[0,-2,0],[1,-2,0],[0,-1,0],[1,-1,0],[0,0,0],[1,0,0],[0,1,0],[1,1,0],[0,2,0],[1,2,0],[0,3,0],[1,3,0],[0,4,0],[1,4,0]]},
		{"name": "ivector", "indexes": [[0,0,0],[1,0,0]]}], "outputs": [{"name": "output", "has_deriv": true, "indexes": [[0,0,0],[1,0,0]]}], "need_model_derivative": true}}`)
	contains(t, nnopt(t, "export", "--output="+out, "--request="+request+"#r", config).ok(t).stderr, "the derivatives that the request asks for are left out")
	if got, _ := readExported(t, out); !slices.Equal(got, []string{"ivector float[sequences, 1, 3]", "input float[sequences, 9, 4]", "output float[sequences, 1, 5]"}) &&
		!slices.Equal(got, []string{"input float[sequences, 9, 4]", "ivector float[sequences, 1, 3]", "output float[sequences, 1, 5]"}) {
		t.Errorf("the model has %q", got)
	}
}

// TestExportLooped: a stream is a model for its first chunk and one for all others, which agree about
// the state.
func TestExportLooped(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "stream.onnx")
	nnopt(t, "export", "--output="+out, "--looped", "--frames-per-chunk=20", "--frame-subsampling-factor=3", compute+"tdnnf.mdl").ok(t)
	first, metadata := readExported(t, filepath.Join(dir, "stream.1.onnx"))
	if metadata["nnet3.chunk"] != "1" || metadata["nnet3.next_chunk"] != "2" || metadata["nnet3.frames_per_chunk"] != "21" {
		t.Errorf("the first chunk has the metadata %v", metadata)
	}
	later, metadata := readExported(t, out)
	if metadata["nnet3.chunk"] != "2" || metadata["nnet3.next_chunk"] != "2" || metadata["nnet3.node.state.0"] == "" || metadata["nnet3.rows.state.0"] == "" {
		t.Errorf("the second chunk has the metadata %v", metadata)
	}
	var given, taken []string
	for _, p := range first {
		if strings.HasPrefix(p, "next.") {
			given = append(given, strings.TrimPrefix(p, "next."))
		}
	}
	var back []string
	for _, p := range later {
		if strings.HasPrefix(p, "state.") {
			taken = append(taken, strings.TrimPrefix(p, "state."))
		}
		if strings.HasPrefix(p, "next.") {
			back = append(back, strings.TrimPrefix(p, "next."))
		}
	}
	for _, list := range [][]string{given, taken, back} {
		slices.Sort(list)
	}
	if len(taken) == 0 || !slices.Equal(given, taken) || !slices.Equal(back, taken) {
		t.Errorf("the first chunk gives %q, later ones take %q and give %q", given, taken, back)
	}
}

// TestExportFaults: what can't be written is an error, and no file.
func TestExportFaults(t *testing.T) {
	dir := t.TempDir()
	config, out := file(t, "net.config", smallConfig), filepath.Join(dir, "out.onnx")
	farBack := smallModel(t, `input-node name=input dim=2
component name=a type=NoOpComponent dim=2
component-node name=a component=a input=Sum(input, IfDefined(Offset(input, -20000)))
output-node name=output input=a
`)
	for _, c := range []struct {
		status int
		args   []string
		wanted []string
	}{
		{statusUsage, []string{config}, []string{"--output=FILE.onnx is needed"}},
		{statusUsage, []string{"--output=-", config}, []string{"not to standard output"}},
		{statusUsage, []string{"--output=" + config, config}, []string{"would be overwritten"}},
		{statusUsage, []string{"--output=" + out, "--looped", "--request=x.json", config}, []string{"--request has no meaning with --looped"}},
		{statusUsage, []string{"--output=" + out, "--extra-left-context-initial=3", config}, []string{"has no meaning without --looped"}},
		{statusUsage, []string{"--output=" + out, "--looped", "--frames-per-chunk=-1", config}, []string{"--frames-per-chunk=-1"}},
		{statusUsage, []string{"--output=" + out, "--looped", "--frame-subsampling-factor=9000000000", config}, []string{"--frame-subsampling-factor=9000000000"}},
		{statusUsage, []string{"--output=" + out, "--num-sequences=3", config}, []string{"num-sequences"}},
		{statusUsage, []string{"--output=" + out, "--request=x.json", "--frames-per-chunk=3", config}, []string{"beside --request"}},
		{statusFault, []string{"--output=" + out, "--request=x.json", config}, []string{"can't read request"}},
		{statusFault, []string{"--output=" + out, "--looped", farBack}, []string{"endless dependencies"}},
		{statusFault, []string{"--output=" + out, filepath.Join(dir, "none.mdl")}, []string{"none.mdl"}},
		{statusFault, []string{"--output=" + filepath.Join(dir, "no", "out.onnx"), config}, []string{"no/out.onnx"}},
	} {
		nnopt(t, append([]string{"export"}, c.args...)...).fails(t, c.status, c.wanted...)
	}
	// Components that can't be said are listed, all of them, with their nodes.
	for _, query := range []string{"none", "+fast_run"} {
		call(gainConfig(t), "export", "--query="+query, "--output="+out, file(t, "gain.config", strings.Replace(gainNetwork, "component=relu input=input", "component=gain input=input", 1))).
			fails(t, statusFault, "2 parts of the network can't be said in ONNX", "node relu1, gain: component gain (GainComponent) has no formula",
				"node both: component both (CompositeComponent) has a part that can't be said: GainComponent has no formula")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}
