// Command voice prints when somebody speaks, in a recording or in a stream as it is heard, by the model of Silero.
//
//	voice -model silero_vad_v5.onnx speech.wav
//	arecord -q -t raw -f S16_LE -r 16000 | voice -model silero_vad_v5.onnx -
//
// A recording has 16,000 samples a second. A stream has no header, one channel, and 16 bits a sample.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/go-audio/audio"
	"github.com/go-audio/wav"

	"github.com/nnopt/nnopt/exec/model"
)

// What the model takes.
const (
	rate   = 16000 // samples a second
	window = 512   // samples of a step
	before = 64    // samples before these, which a step is given, too
)

func main() {
	file := flag.String("model", "silero_vad_v5.onnx", "the model")
	var d detector
	flag.Float64Var(&d.threshold, "threshold", 0.5, "probability from which on it is speech")
	flag.DurationVar(&d.silence, "silence", 100*time.Millisecond, "a pause that is shorter belongs to what is said")
	flag.DurationVar(&d.speech, "speech", 250*time.Millisecond, "what is shorter is no speech")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	m, err := model.Options{Threads: 1}.Open(*file) // its steps are too small to share
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	d.model = m
	read := raw(os.Stdin)
	if name := flag.Arg(0); name != "-" {
		f, err := os.Open(name)
		if err != nil {
			log.Fatal(err)
		}
		defer f.Close()
		if read, err = recording(f); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
	}
	for s, err := range d.spans(ctx, read) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%8.2f s to %8.2f s\n", s.from.Seconds(), s.to.Seconds())
	}
}

// A reader fills a slice with samples from -1 to 1. It fills less only at the end, where it returns io.EOF.
type reader func([]float32) (int, error)

// recording reads a WAV file. It takes the mean of channels.
func recording(f io.ReadSeeker) (reader, error) {
	d := wav.NewDecoder(f)
	if !d.IsValidFile() {
		return nil, errors.New("no WAV file")
	}
	if d.SampleRate != rate || d.BitDepth < 16 {
		return nil, fmt.Errorf("%d samples a second of %d bits, and it should be %d of 16 or more: sox in.wav -r 16000 -b 16 out.wav", d.SampleRate, d.BitDepth, rate)
	}
	channels := int(d.NumChans)
	var buf audio.IntBuffer
	return func(to []float32) (int, error) {
		buf.Data = make([]int, len(to)*channels)
		n, err := d.PCMBuffer(&buf)
		if err != nil {
			return 0, err
		}
		buf.Data = buf.Data[:n-n%channels]
		clear(to)
		for i, v := range buf.AsFloat32Buffer().Data {
			to[i/channels] += v / float32(channels)
		}
		if n < len(to)*channels {
			return n / channels, io.EOF
		}
		return len(to), nil
	}, nil
}

// raw reads a stream as it comes.
func raw(r io.Reader) reader {
	r = bufio.NewReader(r)
	return func(to []float32) (int, error) {
		bytes := make([]byte, 2*len(to))
		n, err := io.ReadFull(r, bytes)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		for i := range n / 2 {
			to[i] = float32(int16(binary.LittleEndian.Uint16(bytes[2*i:]))) / (1 << 15)
		}
		return n / 2, err
	}
}

// A span is when somebody speaks.
type span struct{ from, to time.Duration }

// A detector finds speech.
type detector struct {
	model           *model.Model
	threshold       float64
	silence, speech time.Duration
}

// spans yields speech, each as soon as it has ended.
func (d *detector) spans(ctx context.Context, read reader) iter.Seq2[span, error] {
	return func(yield func(span, error) bool) {
		var s span
		speaking := false
		end := func() bool { // of what is said
			speaking = false
			return s.to-s.from < d.speech || yield(s, nil)
		}
		at := time.Duration(0)
		for p, err := range d.probabilities(ctx, read) {
			if err != nil {
				yield(span{}, err)
				return
			}
			from := at
			at += window * time.Second / rate
			// Silero ends speech at a lower probability than it begins with, so that it is not cut at each breath.
			switch {
			case p >= d.threshold && !speaking:
				s, speaking = span{from, at}, true
			case p >= d.threshold || speaking && p >= d.threshold-0.15:
				s.to = at
			case speaking && at-s.to >= d.silence:
				if !end() {
					return
				}
			}
		}
		if speaking {
			end()
		}
	}
}

// probabilities yields how likely each window of 32 ms has speech. The model is recurrent: its state goes from step to
// step.
func (d *detector) probabilities(ctx context.Context, read reader) iter.Seq2[float64, error] {
	return func(yield func(float64, error) bool) {
		steps, err := d.model.NewStateful() // stateN is the state of the next step
		if err != nil {
			yield(0, err)
			return
		}
		samples := make([]float32, before+window)
		// Its file does not say how large the state is, so the first one is given.
		inputs := model.Inputs{"input": model.Tensor(samples, 1, len(samples)), "sr": int64(rate), "state": model.Tensor(make([]float32, 2*128), 2, 1, 128)}
		for {
			copy(samples, samples[window:])
			n, err := read(samples[before:])
			if err != nil && err != io.EOF {
				yield(0, err)
				return
			}
			if n == 0 {
				return
			}
			clear(samples[before+n:])
			out, runErr := steps.Run(ctx, inputs)
			if runErr != nil {
				yield(0, runErr)
				return
			}
			p, runErr := model.Slice[float32](out["output"])
			if runErr != nil {
				yield(0, runErr)
				return
			}
			delete(inputs, "state")
			if !yield(float64(p[0]), nil) || err == io.EOF {
				return
			}
		}
	}
}
