package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// memory is a process's, in bytes.
type memory struct{ resident, peak, file int64 }

// memoryOf asks the operating system.
func memoryOf(pid int) (memory, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("read memory: %w", err)
	}
	m := memory{}
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(line, ":")
		field := map[string]*int64{"VmRSS": &m.resident, "VmHWM": &m.peak, "RssFile": &m.file}[name]
		if field == nil {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return memory{}, fmt.Errorf("read memory: %s: %w", name, err)
		}
		*field = kib * 1024
	}
	if m.resident == 0 {
		return memory{}, fmt.Errorf("read memory: process %d states none", pid)
	}
	return m, nil
}

// megabytes writes a size in units of 10^6 bytes.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// tick is the unit in which the operating system counts processor time.
const tick = time.Second / 100

// processorTime is what a process has used so far.
func processorTime(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	_, rest, _ := strings.Cut(string(content), ") ") // the name may hold blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("read processor time: %q", content)
	}
	var sum time.Duration
	for _, field := range fields[11:13] { // user, system
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read processor time: %w", err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}
