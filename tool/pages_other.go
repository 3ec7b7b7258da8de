//go:build !linux

package tool

func dropPages() {}
