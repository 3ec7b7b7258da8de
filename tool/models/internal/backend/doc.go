// Package backend reads and runs cases in the form of ONNX's backend tests. A case is a folder with
// model.onnx and folders test_data_set_0, test_data_set_1, …, each with values of the inputs and what
// the outputs should be: input_0.pb, input_1.pb, …, output_0.pb, ….
//
//	c, err := backend.Load(dir)
//	r := c.Run(ctx, "fast_run", opt)
//	fmt.Println(r.OK, r.Error)
//
// A case is not changed by being run. Any number of goroutines may run one.
package backend
