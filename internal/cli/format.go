package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"tidemark.dev/tidemark/internal/digest"
)

// checkFormat checks the value of --output.
func checkFormat(format string, allowed ...string) error {
	if format == "" || slices.Contains(allowed, format) {
		return nil
	}
	return usagef("--output: %q is no format: write one of %s", format, strings.Join(allowed, ", "))
}

// printDocument prints a document as JSON or YAML.
func printDocument(w io.Writer, format string, document any) error {
	if format == "yaml" {
		data, err := yaml.Marshal(document)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		_, err = fmt.Fprintf(w, "%s", data)
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "    ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(document)
}

// shortDigest is a digest for people; "" for none.
func shortDigest(text string) string { return digest.Digest(text).Short() }
