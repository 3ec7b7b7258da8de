package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3"
)

// config is a network with an i-vector that looks two frames back and one ahead.
const config = `
input-node name=ivector dim=2
input-node name=input dim=3
component name=a type=AffineComponent input-dim=8 output-dim=4
component-node name=a component=a input=Append(Offset(input, -2), Offset(input, 1), ReplaceIndex(ivector, t, 0))
output-node name=output input=a
`

// engine returns what a server needs.
func engine(t *testing.T) (*decodable.Streamer, *decodable.Batcher) {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(config), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	streamer, err := decodable.NewStreamer(t.Context(), nn, decodable.Options{FramesPerChunk: 4})
	if err != nil {
		t.Fatal(err)
	}
	batcher, err := streamer.NewBatcher(t.Context(), decodable.BatcherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(batcher.Close)
	return streamer, batcher
}

// start serves, and returns the address.
func start(t *testing.T, most int) (url string, streamer *decodable.Streamer, s *server) {
	t.Helper()
	streamer, batcher := engine(t)
	s = newServer(streamer, batcher, most, time.Minute)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return web.URL, streamer, s
}

// utterance returns the lines of a stream: an i-vector, and frames in pieces of some.
func utterance(number, frames int) (lines []input) {
	x := float32(number)
	lines = append(lines, input{Ivector: []float32{x, 1 - x}})
	for t := 0; t < frames; {
		var piece [][]float32
		for range min(1+(t+number)%5, frames-t) {
			piece = append(piece, []float32{x + float32(t), x * float32(t), 1})
			t++
		}
		lines = append(lines, input{Frames: piece})
	}
	return lines
}

// alone returns the rows of a stream that is computed alone.
func alone(t *testing.T, streamer *decodable.Streamer, lines []input) (all [][]float32) {
	t.Helper()
	stream := streamer.NewStream()
	take := func() {
		for {
			y, err := stream.Rows(t.Context())
			if err == io.EOF || err == nil && y.Rows == 0 {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			for i := range y.Rows {
				all = append(all, slices.Clone(kernel.Row(y, i)))
			}
		}
	}
	for _, l := range lines {
		data, err := json.Marshal(l)
		if err == nil {
			err = accept(stream, data)
		}
		if err != nil {
			t.Error(err)
		}
		take()
	}
	stream.Finish()
	take()
	return all
}

// TestStreams: many clients at once get the rows that each would get alone, and the first ones before
// they have sent the last frame.
func TestStreams(t *testing.T) {
	url, streamer, _ := start(t, 16)
	var wg sync.WaitGroup
	for number := range 12 {
		lines := utterance(number, 9+7*number)
		wg.Go(func() {
			send, body := net.Pipe()
			go func() {
				defer send.Close()
				for _, l := range lines {
					if err := json.NewEncoder(send).Encode(l); err != nil {
						t.Error(err)
					}
				}
			}()
			if got, want := post(t, url, body), alone(t, streamer, lines); !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("stream %d has rows %v, alone it has %v", number, got, want)
			}
		})
	}
	wg.Wait()

	r, w := io.Pipe()
	go func() {
		fmt.Fprintln(w, `{"ivector": [1, 2], "frames": [[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]]}`)
	}()
	response, err := http.Post(url+"/stream", "application/jsonl", r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, `{"rows":[[`) {
		t.Errorf("before the end of the request: %q, %v", line, err)
	}
	w.Close()
}

// post sends a stream and returns its rows.
func post(t *testing.T, url string, body io.Reader) (rows [][]float32) {
	t.Helper()
	response, err := http.Post(url+"/stream", "application/jsonl", body)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer response.Body.Close()
	lines := json.NewDecoder(response.Body)
	for {
		var o output
		if err := lines.Decode(&o); err != nil || o.Error != "" {
			t.Errorf("status %d: %v %s", response.StatusCode, err, o.Error)
			return rows
		}
		if o.Done {
			return rows
		}
		rows = append(rows, o.Rows...)
	}
}

// TestFaults: what is wrong with a stream is said with a status before the first row, and in the last
// line after it.
func TestFaults(t *testing.T) {
	url, _, s := start(t, 1)
	begun := `{"ivector": [1, 2], "frames": [[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]]}`
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"frames": [[1, 2]]}`, 400, "line 1: wrong dimension: frames have 2 columns, but the network wants 3"},
		{`{"frames": [[]]}`, 400, "line 1:"},
		{"{}\n{\"ivector\": [1]}", 400, "line 2: wrong dimension: an i-vector of 1 elements, but the network wants 2"},
		{`{"frames": [[1, 2, 3]]}`, 400, "no i-vector"},
		{"frames", 400, "line 1: invalid character"},
		{`{"frames": [[1e39, 2, 3]]}`, 400, "line 1: json: cannot unmarshal number 1e39"},
		{strings.Repeat(" ", maxLine+1), 400, "token too long"},
		{begun + "\n[", 200, `{"error":"line 2: unexpected end of JSON input"}`},
		{`{"ivector": [3e38, 3e38], "frames": [[3e38, 3e38, 3e38]]}`, 400, "unsupported value"},
		{"", 200, `{"done":true}`},
	} {
		response, err := http.Post(url+"/stream", "application/jsonl", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		if response.Body.Close(); err != nil || response.StatusCode != c.status || !strings.Contains(string(got), c.want) {
			t.Errorf("%.60s: status %d, %s, %v; want %d, %s", c.body, response.StatusCode, got, err, c.status, c.want)
		}
	}

	s.slots <- struct{}{} // another stream
	if response, err := http.Post(url+"/stream", "application/jsonl", nil); err != nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a stream too many: %v, %v", response, err)
	}
	<-s.slots
	s.batcher.Close()
	if response, err := http.Post(url+"/stream", "application/jsonl", strings.NewReader(begun)); err != nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a batcher that is closed: %v, %v", response, err)
	}
}

// TestRun: a server says what its network wants and what it has done, finishes open streams after a
// signal, and ends those that don't end: they get the rows of all frames that have come.
func TestRun(t *testing.T) {
	model := filepath.Join(t.TempDir(), "net.config")
	if err := os.WriteFile(model, []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		grace string
		ends  bool
	}{{"1m", true}, {"1ms", false}} {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		address, result := make(chan string, 1), make(chan error, 1)
		go func() {
			result <- run(ctx, []string{"--listen=127.0.0.1:0", "--frames-per-chunk=4", "--grace=" + c.grace, model}, func(a net.Addr) { address <- "http://" + a.String() })
		}()
		var url string
		select {
		case url = <-address:
		case err := <-result:
			t.Fatal(err)
		}
		about, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		var info map[string]int
		if err := json.NewDecoder(about.Body).Decode(&info); err != nil || info["frame"] != 3 || info["ivector"] != 2 || info["row"] != 4 {
			t.Errorf("GET /: %v, %v", info, err)
		}
		about.Body.Close()
		if m := metrics(t, url); m["nnopt_streams"] != 0 || m["nnopt_chunks_total"] != 0 || m[`nnopt_latency_seconds{quantile="0.99"}`] != 0 {
			t.Errorf("at the beginning: %v", m)
		}

		r, w := io.Pipe()
		go fmt.Fprintln(w, `{"ivector": [1, 2], "frames": [[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]]}`)
		response, err := http.Post(url+"/stream", "application/jsonl", r)
		if err != nil {
			t.Fatal(err)
		}
		first := bufio.NewReader(response.Body)
		if _, err := first.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if m := metrics(t, url); m["nnopt_streams"] != 1 || m["nnopt_chunks_total"] != 1 || m["nnopt_batches_total"] != 1 || m["nnopt_busy_seconds_total"] <= 0 ||
			m[`nnopt_latency_seconds{quantile="0.99"}`] <= 0 {
			t.Errorf("after a chunk: %v", m)
		}
		stop()
		if c.ends {
			w.Close()
		}
		rest, err := io.ReadAll(first)
		if lines := strings.Split(string(rest), "\n"); err != nil || len(lines) != 3 || !strings.HasPrefix(lines[0], `{"rows":[[`) ||
			c.ends != (lines[1] == `{"done":true}`) || c.ends == strings.Contains(lines[1], "the server stops") {
			t.Errorf("grace %s: the stream ends with %q, %v", c.grace, rest, err)
		}
		response.Body.Close()
		w.Close()
		if err := <-result; err != nil {
			t.Errorf("grace %s: the server ends with %v", c.grace, err)
		}
	}
}

// metrics returns what GET /metrics says.
func metrics(t *testing.T, url string) map[string]float64 {
	t.Helper()
	response, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	all := make(map[string]float64)
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		var name string
		var value float64
		if _, err := fmt.Sscanf(lines.Text(), "%s %g", &name, &value); err != nil {
			t.Errorf("%q: %v", lines.Text(), err)
		}
		all[name] = value
	}
	return all
}

// TestArguments: what is wrong with the command line is said before anything is served.
func TestArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"nowhere"}, {"--query=+nothing", "nowhere"}, {"--listen=nowhere"}} {
		if err := run(t.Context(), args, func(net.Addr) { t.Error("it serves") }); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

// TestWarnings: what makes scores of a model doubtful is said before anything is served.
func TestWarnings(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model.config")
	if err := os.WriteFile(model, []byte(`input-node name=input dim=2
component name=bn type=BatchNormComponent dim=2
component-node name=bn component=bn input=input
output-node name=output input=Sum(bn, IfDefined(Offset(bn, 3)))
`), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := run(ctx, []string{"--listen=127.0.0.1:0", model}, func(net.Addr) { stop() }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"batch normalization without statistics", "up to 3 frames of the future"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("it says %q, want %q", said.String(), want)
		}
	}
}
