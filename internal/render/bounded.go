package render

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"tidemark.dev/tidemark/internal/manifest"
)

var errIrregular = errors.New("is no regular file")

// ReadFile reads a regular file of no more than [manifest.MaxSize] bytes.
func ReadFile(path string) ([]byte, error) { return readBounded(path, manifest.MaxSize) }

func readBounded(path string, limit int64) ([]byte, error) {
	return bounded(os.Stat, os.Open, path, limit)
}

// bounded reads a file without ever waiting for a pipe, or reading on and on from a device.
func bounded(stat func(string) (fs.FileInfo, error), open func(string) (*os.File, error), path string, limit int64) ([]byte, error) {
	info, err := stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: path, Err: errIrregular}
	case info.Size() > limit:
		return nil, &fs.PathError{Op: "read", Path: path, Err: manifest.ErrLarge}
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = data.ReadFrom(io.LimitReader(f, limit+1))
	if err == nil && int64(data.Len()) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: manifest.ErrLarge}
	}
	return data.Bytes(), err
}
