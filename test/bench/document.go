package main

import (
	"fmt"
	"os"
	"strings"
)

// renew replaces the figures of one benchmark in the document: what stands between its markers.
func renew(path, name, text string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("renew figures: %w", err)
	}
	begin, end := marker(name, "begin"), marker(name, "end")
	before, rest, found := strings.Cut(string(content), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("renew figures: %s lacks the markers %s and %s", path, begin, end)
	}
	if err := os.WriteFile(path, []byte(before+begin+"\n"+text+end+after), 0o644); err != nil {
		return fmt.Errorf("renew figures: %w", err)
	}
	return nil
}

func marker(name, edge string) string { return fmt.Sprintf("<!-- bench %s: %s -->", name, edge) }
