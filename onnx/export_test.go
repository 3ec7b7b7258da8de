package onnx

import "context"

// WriteFileUpTo is WriteFile with another limit than 2 GiB.
func (m *Model) WriteFileUpTo(ctx context.Context, name string, limit int64) error {
	return m.writeFile(ctx, name, limit)
}
