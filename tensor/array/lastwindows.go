package array

import "github.com/nnopt/nnopt/kernel"

// inPlace reports whether products can read patches where they are in the input.
func (c *lastConvolution) inPlace() bool {
	return c.prepared != nil && c.x.dtype == Float32 && c.prepared.groups[0].weights.Divisible()
}

// windows multiplies patches where they are.
func (c *lastConvolution) windows() error {
	s := c.slide
	bytes := epilogueBytes
	if c.complete.left == nil {
		bytes = 1 << 62
	}
	c.patches = kernel.Patches{
		Pixel: c.groups * c.in, Channels: c.in,
		In: s.in, Out: s.out, Size: s.size, Stride: s.stride, Dilation: s.dilation, Before: s.before,
	}
	return c.blocks(4*c.groups*c.out, bytes, minLastRows, func(c *lastConvolution, first, n int) error {
		x, m := &c.patches, c.groups*c.out
		x.Data = Slice[float32](c.x)
		if c.groups > 1 && x.MulPatchesGroups(first, c.prepared.kernels, c.complete.of(first, n, 0, m), kernel.Matrix{Rows: n, Cols: m, Stride: m, Data: Slice[float32](c.y)[first*m:][:n*m]}) {
			return nil
		}
		for g := range c.groups {
			x.Data = Slice[float32](c.x)[g*c.in:]
			y := kernel.Matrix{Rows: n, Cols: c.out, Stride: m, Data: Slice[float32](c.y)[first*m+g*c.out:][:(n-1)*m+c.out]}
			c.ws.meet(&c.prepared.groups[g].weights)
			c.prepared.groups[g].weights.MulPatches(x, first, c.complete.of(first, n, g*c.out, c.out), y)
		}
		return nil
	})
}
