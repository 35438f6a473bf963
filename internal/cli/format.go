package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/report"
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

// row joins the cells of a table's line. What they say comes from the cluster: a line break in it would break the table, and other
// control characters act on the terminal.
func row(cells []string) string {
	plain := make([]string, len(cells))
	for i, cell := range cells {
		plain[i] = report.Plain(strings.Join(strings.FieldsFunc(cell, isBreak), " "))
	}
	return strings.Join(plain, "\t")
}

// plainLine is a line of a text without what acts on the terminal. Tabs stay.
func plainLine(text string) string {
	parts := strings.Split(text, "\t")
	for i := range parts {
		parts[i] = report.Plain(parts[i])
	}
	return strings.Join(parts, "\t")
}

func isBreak(r rune) bool { return strings.ContainsRune("\n\r\t\v\f", r) }

// shortDigest is a digest for people; "" for none.
func shortDigest(text string) string { return digest.Digest(text).Short() }
