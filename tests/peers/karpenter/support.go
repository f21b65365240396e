package main

import (
	"bufio"
	"bytes"
	"syscall"
)

func newBufio(text []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(text)) }

// Of this process, all threads.
func processorSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}
