module example.com/ocr

go 1.26.0

require (
	github.com/nnopt/nnopt v0.0.0
	golang.org/x/image v0.48.0
)

require (
	github.com/hashicorp/errwrap v1.0.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/nnopt/nnopt => ../../..
