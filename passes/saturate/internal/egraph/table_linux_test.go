package egraph

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nnopt/nnopt/internal/longtest"
)

var (
	tableFlag  = flag.Bool("table", false, "print the tables of docs/measurements.md")
	unitFlag   = flag.String("unit", "", "a program that prints the seconds of one sgemm of 1024x1024x1024")
	roundsFlag = flag.Int("rounds", 5, "processes for each row of the tables")
)

// eggUnit is what the sgemm took where egg was measured, in seconds.
const eggUnit = 0.0111

// tableRows are the rows of the tables, with egg's figures: nodes a second, and megabytes.
var tableRows = []struct {
	limit     int
	backoff   Backoff
	rate, mem float64
}{
	{210700, Backoff{}, 617000, 79.6},
	{2436063, Backoff{}, 329000, 1058},
	{88296, Backoff{1000, 5}, 85500, 28.3},
	{448928, Backoff{1000, 5}, 40700, 168},
	{10000, Backoff{1000, 5}, 0, 0},
	{100000, Backoff{1000, 5}, 0, 0},
	{1000000, Backoff{1000, 5}, 0, 0},
}

// eggProblems are egg's milliseconds for mathProblems.
var eggProblems = []float64{2.62, .086, .016, .039, .513, .360, .011, .011, .141, .105, .011, .228, 1.09, .012, .010, .014, .398, 1.58, .175}

// sample is what a process measures.
type sample struct {
	Nodes, Laps      int
	Seconds, Extract float64
	Before, After    float64 // peak megabytes, before and after extraction
	Problems         []float64
}

// TestTable prints the tables. Each row is measured by processes of its own, on one thread.
func TestTable(t *testing.T) {
	if child := os.Getenv("EGRAPH_ROW"); child != "" {
		measureChild(t, child)
		return
	}
	if !*tableFlag {
		t.Skip("with -table it prints the tables of docs/measurements.md")
	}
	units := []float64{}
	run := func(row string) sample {
		units = append(units, unit(t))
		cmd := exec.Command(os.Args[0], "-test.run", "^TestTable$", "-test.v")
		cmd.Env = append(os.Environ(), "EGRAPH_ROW="+row, "GOMAXPROCS=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var s sample
		_, text, _ := strings.Cut(string(out), "SAMPLE ")
		text, _, _ = strings.Cut(text, "\n")
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return s
	}
	fmt.Println("| bans | limit | laps | nodes left | s | nodes/s | ns/node | times egg | MB | egg | extraction, s | MB with it |")
	for i, row := range tableRows {
		var s []sample
		units = units[:0]
		for range *roundsFlag {
			s = append(s, run(strconv.Itoa(i)))
		}
		median := func(of func(sample) float64) float64 {
			list := make([]float64, len(s))
			for k := range s {
				list[k] = of(s[k])
			}
			slices.Sort(list)
			return list[len(list)/2]
		}
		seconds := median(func(s sample) float64 { return s.Seconds })
		rate := float64(s[0].Nodes) / seconds
		times, mem := "", ""
		if row.rate > 0 {
			times, mem = fmt.Sprintf("%.1f", rate*slices.Min(units)/(row.rate*eggUnit)), fmt.Sprint(row.mem)
		}
		fmt.Printf("| %v | %d | %d | %d | %.4f | %.0f | %.0f | %s | %.1f | %s | %.4f | %.1f |\n", row.backoff.Matches > 0, row.limit, s[0].Laps, s[0].Nodes, seconds,
			rate, 1e9/rate, times, median(func(s sample) float64 { return s.Before }), mem,
			median(func(s sample) float64 { return s.Extract }), median(func(s sample) float64 { return s.After }))
	}
	best := make([]float64, len(mathProblems))
	units = units[:0]
	for k := range *roundsFlag {
		for i, v := range run("problems").Problems {
			if k == 0 || v < best[i] {
				best[i] = v
			}
		}
	}
	fmt.Println("\n| problem | ms | egg | of egg's time |")
	for i, p := range mathProblems {
		fmt.Printf("| %s | %.4f | %.3f | %.2f |\n", p.name, best[i], eggProblems[i], best[i]/eggProblems[i]*eggUnit/slices.Min(units))
	}
}

// unit returns the seconds of the product that times are compared with.
func unit(t *testing.T) float64 {
	if *unitFlag == "" {
		return eggUnit
	}
	out, err := exec.Command(*unitFlag).Output()
	if err != nil {
		t.Fatal(err)
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// measureChild measures a row, or the problems, and prints the sample.
func measureChild(t *testing.T, child string) {
	longtest.AsProgram()
	var s sample
	w := newMath(t)
	if child == "problems" {
		for k := range mathProblems {
			rules := w.rulesOf(t, k)
			best := math.Inf(1)
			for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; {
				start := time.Now()
				w.solve(t, k, rules)
				best = min(best, time.Since(start).Seconds())
			}
			s.Problems = append(s.Problems, 1000*best)
		}
	} else {
		i, err := strconv.Atoi(child)
		if err != nil {
			t.Fatal(err)
		}
		row := tableRows[i]
		rules := w.rules(t, nil)
		g := New(w.lang, WithAnalysis(w.analysis()))
		root := w.add(t, g, mathSum)
		start := processTime()
		report, err := g.Saturate(t.Context(), rules, Options{Limits: Limits{Nodes: row.limit}, Backoff: row.backoff})
		if err != nil {
			t.Fatal(err)
		}
		s.Seconds = processTime() - start
		s.Nodes, s.Laps, s.Before = report.Nodes, len(report.Laps), peak(t)
		start = processTime()
		if _, err := g.Extract(t.Context(), treeSize, root); err != nil {
			t.Fatal(err)
		}
		s.Extract, s.After = processTime()-start, peak(t)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("SAMPLE %s\n", text)
}

// processTime returns the processor time of all threads, in seconds.
func processTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// peak returns the largest resident size of the process, in megabytes.
func peak(t *testing.T) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kb, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb * 1024 / 1e6
}
