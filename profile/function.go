package profile

import "time"

// A Function is what it cost to compile one graph, and to run it. It is the
// document that the reports write; the zero value of a field leaves its line
// out or prints a zero, as Theano does.
type Function struct {
	Message string `json:"message,omitempty"` // what was compiled: a file, an expression, a request

	Calls    int           `json:"calls"`
	CallTime time.Duration `json:"call_ns"` // in all calls

	CompileTime   time.Duration `json:"compile_ns"`             // all of it, from source to something that runs
	Applies       int           `json:"applies"`                // after optimization
	OptimizerTime time.Duration `json:"optimizer_ns,omitempty"` // zero: Optimizer.Time
	ValidateTime  time.Duration `json:"validate_ns,omitempty"`  // zero: Optimizer.Validate
	LinkTime      time.Duration `json:"link_ns"`                // from the optimized graph to what runs
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
	Applies int           `json:"applies"` // how many the program holds
	Calls   int           `json:"calls"`   // how many were executed
	Time    time.Duration `json:"time_ns"`
	Bytes   int64         `json:"bytes"` // written, over all calls
}

// optimizerTime returns OptimizerTime or, where that is zero, the optimizer's own.
func (f *Function) optimizerTime() time.Duration {
	if f.OptimizerTime == 0 && f.Optimizer != nil {
		return f.Optimizer.Time
	}
	return f.OptimizerTime
}

// validateTime returns ValidateTime or, where that is zero, the optimizer's own.
func (f *Function) validateTime() time.Duration {
	if f.ValidateTime == 0 && f.Optimizer != nil {
		return f.Optimizer.Validate
	}
	return f.ValidateTime
}
