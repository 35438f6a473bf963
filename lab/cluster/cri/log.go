package cri

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// logWriter appends whole lines to a container's log in the format that the kubelet reads.
type logWriter struct {
	path string
	mu   sync.Mutex
	rest []byte // an unfinished line
}

func (l *logWriter) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, text...)
	end := bytes.LastIndexByte(l.rest, '\n')
	if end < 0 {
		return len(text), nil
	}
	var lines bytes.Buffer
	now := time.Now().UTC().Format(time.RFC3339Nano)
	for line := range bytes.Lines(l.rest[:end+1]) {
		fmt.Fprintf(&lines, "%s stdout F %s", now, line)
	}
	l.rest = append([]byte(nil), l.rest[end+1:]...)
	if err := l.append(lines.Bytes()); err != nil {
		return 0, fmt.Errorf("write container log: %w", err)
	}
	return len(text), nil
}

// append opens the file each time: the kubelet may have rotated it, and a program writes few lines.
func (l *logWriter) append(lines []byte) error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(lines)
	return err
}
