package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/onnx"
)

// started starts a server with the encoder, which takes tokens from 0 to 7, and a model for the examples of the
// protocol. stop ends it.
func started(t *testing.T, l limits) (s *server, url string, stop func()) {
	t.Helper()
	s = newServer(l)
	m, err := model.Open("../../../exec/model/testdata/encoder.onnx")
	if err != nil {
		t.Fatal(err)
	}
	s.add("encoder", m, model.BatcherOptions{})
	tensor := func(name string, elem onnx.DataType, dims ...int64) *onnx.ValueInfo {
		shape := new(onnx.Shape)
		for _, d := range dims {
			shape.Dims = append(shape.Dims, &onnx.Dim{Value: &d})
		}
		return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: elem, Shape: shape}}}
	}
	example, err := model.Options{}.New(&onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Inputs:  []*onnx.ValueInfo{tensor("input0", onnx.Uint32, 2, 2), tensor("input1", onnx.Bool, 3)},
		Outputs: []*onnx.ValueInfo{tensor("output0", onnx.Uint32, 2, 2), tensor("output1", onnx.Bool, 3)},
		Nodes:   []*onnx.Node{{Op: "Identity", Inputs: []string{"input0"}, Outputs: []string{"output0"}}, {Op: "Not", Inputs: []string{"input1"}, Outputs: []string{"output1"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.add("mymodel", example, model.BatcherOptions{})
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, listener, 20*time.Millisecond) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return s, "http://" + listener.Addr().String(), stop
}

var usual = limits{body: 1 << 20, requests: 256, header: 10 * time.Second, read: 10 * time.Second, compute: 10 * time.Second}

// ask sends a request, by GET if there is no body.
func ask(t *testing.T, url, body string, header ...string) (status int, answer string, h http.Header) {
	t.Helper()
	method := "GET"
	if body != "" {
		method = "POST"
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, "", nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, strings.TrimSuffix(string(text), "\n"), resp.Header
}

// TestProtocol sends requests as the protocol documents them.
func TestProtocol(t *testing.T) {
	_, url, _ := started(t, usual)
	example := `{"id" : "42", "inputs" : [{"name" : "input0", "shape" : [ 2, 2 ], "datatype" : "UINT32", "data" : [ 1, 2, 3, 4 ]},
		{"name" : "input1", "shape" : [ 3 ], "datatype" : "BOOL", "data" : [ true, false, true ]}], "outputs" : [ {"name" : "output0"} ]}`
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v2", "", 200, `{"extensions":["binary_tensor_data"],"name":"nnopt","version":"2"}`},
		{"/v2/health/live", "", 200, `{"live":true}`},
		{"/v2/health/ready", "", 200, `{"ready":true}`},
		{"/v2/models/mymodel/ready", "", 200, `{"name":"mymodel","ready":true}`},
		{"/v2/models/mymodel/versions/1/ready", "", 200, `{"name":"mymodel","ready":true}`},
		{"/v2/models/encoder", "", 200, `{"inputs":[{"name":"input_ids","datatype":"INT64","shape":[-1,-1]},{"name":"attention_mask","datatype":"INT64","shape":[-1,-1]}],` +
			`"name":"encoder","outputs":[{"name":"embedding","datatype":"FP32","shape":[-1,3]}],"platform":"onnx","versions":["1"]}`},
		{"/v2/models/mymodel/infer", example, 200, `{"model_name":"mymodel","model_version":"1","id":"42","outputs":[{"name":"output0","datatype":"UINT32","shape":[2,2],"data":[1,2,3,4]}]}`},
		{"/v2/models/mymodel/versions/1/infer", strings.ReplaceAll(example, "[ 1, 2, 3, 4 ]", "[[1, 2], [3,4]]"), 200, `"data":[1,2,3,4]`},
		{"/v2/models/mymodel/infer", strings.ReplaceAll(example, "output0", "output1"), 200, `"datatype":"BOOL","shape":[3],"data":[false,true,false]`},
		{"/v2/models/mymodel/infer", strings.ReplaceAll(example, "output0", "output2"), 400, `no output \"output2\"`},
		{"/v2/models/mymodel/infer", strings.ReplaceAll(example, "input1", "input0"), 400, `\"input0\" is given twice`},
		{"/v2/models/mymodel/infer", strings.ReplaceAll(example, "BOOL", "BYTES"), 400, `datatype \"BYTES\"`},
		{"/v2/models/mymodel/infer", strings.ReplaceAll(example, "[ 2, 2 ]", "[ 2, 3 ]"), 400, "4 elements for the shape [2 3]"},
		{"/v2/models/mymodel/infer", strings.ReplaceAll(example, "[ 2, 2 ]", "[ 1, 4 ]"), 400, "size 0 should be 2"},
		{"/v2/models/mymodel/infer", strings.ReplaceAll(example, "[ 2, 2 ]", "[ 4000000000, 4000000000, 4000000000 ]"), 400, "is no shape"},
		{"/v2/models/mymodel/infer", strings.ReplaceAll(example, "[ 1, 2, 3, 4 ]", `{"a": [1]}`), 400, "cannot unmarshal"},
		{"/v2/models/mymodel/infer", strings.ReplaceAll(example, "[ 1, 2, 3, 4 ]", `"AAAA"`), 400, "cannot unmarshal"},
		{"/v2/models/mymodel/infer", example[:100], 400, "unexpected end"},
		{"/v2/models/mymodel/infer", "{}", 400, `"input0\": wanted uint32[2,2], given nothing`},
		{"/v2/models/none/infer", example, 404, `models are [\"encoder\" \"mymodel\"]`},
		{"/v2/models/mymodel/versions/2/infer", example, 404, `version \"2\"`},
		{"/v2/none", "", 404, "there is no GET /v2/none"},
		{"/v2/models/encoder/infer", tokens(99), 400, "index"},
		{"/metrics", "", 200, `nnopt_requests_total{model="mymodel",code="200"} 3`},
	} {
		if status, got, _ := ask(t, url+c.path, c.body); status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %d %s, want %d %s", c.path, c.body, status, got, c.status, c.want)
		}
	}
}

// TestBinary: tensors may stand behind the JSON.
func TestBinary(t *testing.T) {
	_, url, _ := started(t, usual)
	head := `{"inputs":[{"name":"input0","shape":[2,2],"datatype":"UINT32","parameters":{"binary_data_size":16}},` +
		`{"name":"input1","shape":[3],"datatype":"BOOL","parameters":{"binary_data_size":3}}],"outputs":[{"name":"output0","parameters":{"binary_data":true}},{"name":"output1","parameters":{"binary_data":%v}}]}`
	tail := "\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x00\x01\x00"
	for _, both := range []bool{true, false} {
		h := fmt.Sprintf(head, both)
		status, got, header := ask(t, url+"/v2/models/mymodel/infer", h+tail, headerLength, strconv.Itoa(len(h)))
		n, err := strconv.Atoi(header.Get(headerLength))
		want := tail[:16]
		if both {
			want += "\x01\x00\x01"
		}
		if status != 200 || err != nil || got[n:] != want || both == strings.Contains(got[:n], "true") {
			t.Errorf("%d %q, %v", status, got, header)
		}
	}
	h := fmt.Sprintf(head, true)
	for _, c := range []struct{ body, length string }{{h + tail[1:], strconv.Itoa(len(h))}, {h + tail + "x", strconv.Itoa(len(h))}, {h + tail, "-1"}, {h + tail, "1000"}, {h + tail, "x"}, {h, ""},
		{strings.ReplaceAll(h, "16", "15") + tail[1:], strconv.Itoa(len(h))}} {
		if status, got, _ := ask(t, url+"/v2/models/mymodel/infer", c.body, headerLength, c.length); status != 400 {
			t.Errorf("%.20s, %s: %d %s", c.body, c.length, status, got)
		}
	}
}

// tokens is a request for the encoder, whose answer begins with 1 for the token 1 and 0 for 2 and 3.
func tokens(ids ...int) string {
	list, mask := fmt.Sprint(ids), strings.Repeat("1 ", len(ids))
	in := func(name, data string) string {
		return fmt.Sprintf(`{"name":%q,"shape":[1,%d],"datatype":"INT64","data":[%s]}`, name, len(ids), strings.Join(strings.Fields(strings.Trim(data, "[]")), ","))
	}
	return `{"inputs":[` + in("input_ids", list) + "," + in("attention_mask", mask) + "]}"
}

func first(answer string) float64 {
	var a struct{ Outputs []struct{ Data []float64 } }
	if json.Unmarshal([]byte(answer), &a) != nil || len(a.Outputs) != 1 || len(a.Outputs[0].Data) != 3 {
		return -1
	}
	return a.Outputs[0].Data[0]
}

// dial sends text that need not be a request.
func dial(t *testing.T, url, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, text)
	return c
}

// half is a request without most of its body.
const half = "POST /v2/models/encoder/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"

// TestConcurrent: 200 requests at a time get their own answers, while clients that are slow or broken get nothing.
func TestConcurrent(t *testing.T) {
	_, url, _ := started(t, usual)
	for i := range 30 {
		c := dial(t, url, []string{half, "POST /v2", "\x00\xff\r\n\r\n"}[i%3])
		if i%2 == 0 {
			c.Close() // in the middle
		} else {
			defer c.Close()
		}
	}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			for k := range 5 {
				id, want := 1+(i+k)%3, 0.0
				if id == 1 {
					want = 1
				}
				if status, got, _ := ask(t, url+"/v2/models/encoder/infer", tokens(id)); status != 200 || first(got) != want {
					t.Errorf("token %d: %d %s", id, status, got)
				}
			}
		})
	}
	wg.Wait()
}

// TestLimits: what is too much, too many or too slow is refused.
func TestLimits(t *testing.T) {
	s, url, _ := started(t, limits{body: 1 << 12, requests: 2, header: 10 * time.Second, read: 300 * time.Millisecond, compute: 10 * time.Second})
	slow := dial(t, url, half)
	defer slow.Close()
	if answer, err := io.ReadAll(slow); err != nil || !bytes.Contains(answer, []byte(" 408 ")) {
		t.Errorf("a slow client: %s, %v", answer, err)
	}
	if status, got, _ := ask(t, url+"/v2/models/encoder/infer", tokens(make([]int, 5000)...)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d %s", status, got)
	}
	for range cap(s.slots) {
		s.slots <- struct{}{}
	}
	if status, got, h := ask(t, url+"/v2/models/encoder/infer", tokens(1)); status != http.StatusServiceUnavailable || h.Get("Retry-After") == "" {
		t.Errorf("too many requests: %d %s", status, got)
	}
	for range cap(s.slots) {
		<-s.slots
	}
}

// TestStop: each request that the server has taken is answered before it ends.
func TestStop(t *testing.T) {
	s, url, stop := started(t, usual)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var answered atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for {
				resp, err := client.Post(url+"/v2/models/encoder/infer", "application/json", strings.NewReader(tokens(1, 1, 1)))
				if err != nil {
					return // it takes no more
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 || first(string(text)) != 1 {
					t.Errorf("%d %s, %v", resp.StatusCode, text, err)
				}
				answered.Add(1)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	s.stopping.Store(true)
	if status, _, _ := ask(t, url+"/v2/health/ready", ""); status != http.StatusServiceUnavailable {
		t.Errorf("a server that ends is ready: %d", status)
	}
	resp, err := http.Post(url+"/v2/models/encoder/infer", "application/json", strings.NewReader(tokens(1)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	answered.Add(1)
	if !resp.Close {
		t.Errorf("a server that ends waits for another request")
	}
	stop()
	wg.Wait()
	taken := 0
	for _, c := range s.counted {
		taken += c.requests
	}
	if answered.Load() == 0 || int(answered.Load()) != taken {
		t.Errorf("%d of %d requests were answered", answered.Load(), taken)
	}
}

// TestTypes: all types go through JSON, but halves, and through bytes.
func TestTypes(t *testing.T) {
	for _, d := range datatypes {
		data := `[[1],[0]]`
		if d.name == "BOOL" {
			data = `[[true],[false]]`
		}
		if _, err := d.fromJSON([]byte(data), []int{2, 1}); (err != nil) != strings.HasSuffix(d.name, "16") && !strings.Contains(d.name, "INT") {
			t.Errorf("%s: %v", d.name, err)
		}
		if _, err := d.fromBinary(make([]byte, 16), []int{2}); err != nil {
			t.Errorf("%s: %v", d.name, err)
		}
		if _, err := d.fromBinary(make([]byte, 15), []int{2}); (err == nil) != (strings.HasSuffix(d.name, "8") || d.name == "BOOL") {
			t.Errorf("%s, 15 bytes: %v", d.name, err)
		}
	}
	if binary.Size(true) != 1 {
		t.Error("bools take more than a byte")
	}
}
