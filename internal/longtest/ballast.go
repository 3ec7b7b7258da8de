package longtest

// ballast makes the garbage collector wait. Tests allocate much and keep little: in a heap of 4 MiB, to which Go keeps
// them, the collector takes a quarter of the time of passes/tensorpass (28 November 2026). Nothing is ever written to
// it, so that it takes no memory, and large heaps grow no further than others do.
//
//lint:ignore U1000 it is there for the collector, which counts it
var ballast = make([]byte, 64<<20)
