package component

// columns is what components with as many columns in their output as in their input have in common.
type columns struct{ dim int }

// InputDim is the number of columns.
func (c *columns) InputDim() int { return c.dim }

// OutputDim is the number of columns.
func (c *columns) OutputDim() int { return c.dim }

// testMode is what components that draw random numbers only in training have in common.
type testMode struct{ test bool }

// TestMode reports whether the component is in test mode.
func (m *testMode) TestMode() bool { return m.test }

// SetTestMode chooses between use and training.
func (m *testMode) SetTestMode(test bool) { m.test = test }
