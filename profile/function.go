package profile

import "time"

// A Function is what it cost to compile one graph and to run it. It is the document
// that reports are made of. For a zero field a report leaves out the line or prints
// a zero, as Theano does.
type Function struct {
	Message string `json:"message,omitempty"` // what was compiled, such as a file or an expression

	Calls    int           `json:"calls"`
	CallTime time.Duration `json:"call_ns"` // in all calls

	PeakBytes int64 `json:"peak_bytes,omitempty"` // the most memory of a call, as far as it is known; zero: not known

	CompileTime   time.Duration `json:"compile_ns"`             // from source to something that runs
	Applies       int           `json:"applies"`                // after optimization
	OptimizerTime time.Duration `json:"optimizer_ns,omitempty"` // zero: Optimizer.Time
	ValidateTime  time.Duration `json:"validate_ns,omitempty"`  // zero: Optimizer.Validate
	LinkTime      time.Duration `json:"link_ns"`                // from the optimized graph to something that runs
	Phases        []Phase       `json:"phases,omitempty"`       // further parts of CompileTime, in their order

	Optimizer *Record  `json:"optimizer,omitempty"`
	Execution []OpCost `json:"execution,omitempty"`
}

// A Phase is a part of the compile time that is neither optimizing nor linking,
// such as reading a model or compiling a request into commands.
type Phase struct {
	Name string        `json:"name"`
	Time time.Duration `json:"time_ns"`
}

// An OpCost is the cost of all executions of one op or one kind of command.
type OpCost struct {
	Name    string        `json:"name"`
	Applies int           `json:"applies"` // in the program
	Calls   int           `json:"calls"`   // executed
	Time    time.Duration `json:"time_ns"`
	Bytes   int64         `json:"bytes"` // written, over all calls
	// Helped is how long other threads worked meanwhile, all together, and Waited how long the first
	// one waited for them.
	Helped time.Duration `json:"helped_ns,omitempty"`
	Waited time.Duration `json:"waited_ns,omitempty"`
}

// cores returns how many threads worked on average.
func (o *OpCost) cores() float64 {
	return float64(o.Time+o.Helped-o.Waited) / float64(max(o.Time, 1))
}

// optimizerTime returns OptimizerTime or, if it is zero, that of the optimizer.
func (f *Function) optimizerTime() time.Duration {
	if f.OptimizerTime == 0 && f.Optimizer != nil {
		return f.Optimizer.Time
	}
	return f.OptimizerTime
}

// validateTime returns ValidateTime or, if it is zero, that of the optimizer.
func (f *Function) validateTime() time.Duration {
	if f.ValidateTime == 0 && f.Optimizer != nil {
		return f.Optimizer.Validate
	}
	return f.ValidateTime
}
