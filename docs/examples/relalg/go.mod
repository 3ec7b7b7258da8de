module example.com/relalg

go 1.26

require github.com/nnopt/nnopt v0.0.0

require (
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe // indirect
	github.com/hashicorp/errwrap v1.0.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/nnopt/nnopt => ../../..
