package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A value is an input or an output: its elements are in File, in the order of memory.
type value struct {
	Name, Dtype, File string
	Dims              []int64
}

// slice reads the elements, a []float32 for Dtype float32 and so on.
func (v value) slice() any {
	raw, err := os.ReadFile(v.File)
	check(err)
	n := 1
	for _, d := range v.Dims {
		n *= int(d)
	}
	var s any
	switch v.Dtype {
	case "float32":
		s = make([]float32, n)
	case "float64":
		s = make([]float64, n)
	case "int32":
		s = make([]int32, n)
	case "int64":
		s = make([]int64, n)
	case "bool":
		s = make([]bool, n)
	case "uint8":
		s = make([]uint8, n)
	default:
		check(fmt.Errorf("type %s", v.Dtype))
	}
	check(binary.Read(bytes.NewReader(raw), binary.LittleEndian, s))
	return s
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// main is called with a model, a description of its inputs, a folder for its outputs and how often to run it. It prints times in
// milliseconds and the peak of memory, or an error.
func main() {
	defer func() {
		if r := recover(); r != nil {
			json.NewEncoder(os.Stdout).Encode(map[string]any{"error": fmt.Sprint(r)})
		}
	}()
	var in []value
	text, err := os.ReadFile(os.Args[2])
	check(err)
	check(json.Unmarshal(text, &in))
	times, err := strconv.Atoi(os.Args[4])
	check(err)
	runtime.GOMAXPROCS(1)
	start := time.Now()
	run := open(os.Args[1], in)
	out := run()
	first := time.Since(start)
	var took []time.Duration
	for range times {
		t := time.Now()
		run()
		took = append(took, time.Since(t))
	}
	slices.Sort(took)
	for i, o := range out {
		f, err := os.Create(fmt.Sprintf("%s/%d", os.Args[3], i))
		check(err)
		check(binary.Write(f, binary.LittleEndian, o))
		check(f.Close())
	}
	status, _ := os.ReadFile("/proc/self/status")
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	kB, _ := strconv.Atoi(strings.Fields(peak)[0])
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"first": ms(first), "run": ms(took[len(took)/2]), "MB": kB >> 10}))
}
