package index

var ErrRuns = errRuns
