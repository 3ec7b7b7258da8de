//go:build !linux

package networks

func dropPages() {}
